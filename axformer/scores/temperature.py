"""Losses at a model's own best temperature, and how far its confidence is from the truth.

A model that is too sure of itself lowers its loss by doubt alone: a removal that adds nothing but noise looks like a gain. One
scalar, by which all logits are divided (Guo et al., On Calibration of Modern Neural Networks, section 4.2), takes doubt out of
the comparison, if each model has its own best one.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch, Samples
from axformer.tasks.base import Losses

LOGITS = ("logits", "start_logits", "end_logits")
"""What is divided, of what a model returns."""
STEP = 2 ** (1 / 6)
TEMPERATURES = tuple(STEP**power for power in range(-24, 25))
"""Where losses are computed: from 1/16 to 16. Between them each loss is a parabola of the logarithm."""


class LossCurves:
    """The loss of each model row at every temperature."""

    def __init__(self, task: Losses, samples: Samples) -> None:
        self._task = task
        self._samples = samples
        self._values = torch.zeros(len(samples.sample_of_row), len(TEMPERATURES))

    def record(self, output: Any, batch: Batch) -> None:
        """Take the losses of a batch, whose output is a model's."""
        curves = [self._task.losses(divided(output, temperature), batch).cpu() for temperature in TEMPERATURES]
        self._values[batch.rows.cpu()] = torch.stack(curves, dim=1)

    def best(self) -> tuple[Tensor, float]:
        """The loss of each sample at the temperature of the smallest mean loss, shape (samples,), and that temperature."""
        return _lowest(torch.stack([self._samples.per_sample(column) for column in self._values.T], dim=1))


def _lowest(curves: Tensor) -> tuple[Tensor, float]:
    means = curves.double().mean(dim=0)
    middle = int(means[1:-1].argmin()) + 1
    left, lowest, right = (means[middle + side].item() for side in (-1, 0, 1))
    bend = left - 2 * lowest + right
    offset = min(1.0, max(-1.0, (left - right) / (2 * bend))) if bend > 0 else 0.0
    shares = torch.tensor([offset * (offset - 1) / 2, 1 - offset**2, offset * (offset + 1) / 2])
    return curves[:, middle - 1 : middle + 2] @ shares, TEMPERATURES[middle] * STEP**offset


def best_temperature(logits: Tensor, labels: Tensor) -> float:
    """The temperature at which the mean cross-entropy is smallest, between 1/16 and 16.

    Args:
        logits: shape (samples, classes).
        labels: the index of each right answer, shape (samples,).
    """
    losses = [functional.cross_entropy(logits / one, labels, reduction="none") for one in TEMPERATURES]
    return _lowest(torch.stack(losses, dim=1))[1]


def divided(output: Any, temperature: float) -> Any:
    """What a model returns, with its logits divided by a temperature."""
    logits = {name: getattr(output, name, None) for name in LOGITS}
    return SimpleNamespace(**{name: values / temperature for name, values in logits.items() if values is not None})


BINS = 15


def calibration_error(confidences: np.ndarray, right: np.ndarray) -> float:
    """The expected calibration error (Guo et al., equation 3): over 15 bins of equal width, weighted by their samples, the mean
    distance between a bin's mean confidence and its share of right answers.

    Args:
        confidences: the probability of each sample's answer, shape (samples,).
        right: whether it is right, the same shape.
    """
    bins = np.minimum((confidences * BINS).astype(int), BINS - 1)
    excess = np.bincount(bins, weights=confidences - right, minlength=BINS)
    return float(np.abs(excess).sum()) / len(confidences)

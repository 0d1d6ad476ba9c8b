"""What guessing gets, so that a probe is not called as good as another where neither knows anything."""

import math
from dataclasses import dataclass
from statistics import NormalDist

from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.scores.confidence import CONFIDENCE

_ERRORS = NormalDist().inv_cdf(CONFIDENCE)
"""Standard errors by which a figure is reliably higher, on one side."""


@dataclass(frozen=True)
class Guessing:
    """The value of guessing in one metric."""

    value: float
    """The share that the most frequent answer has right; 0 for correlations and other metrics."""
    rows: int

    def is_beaten(self, metric: float) -> bool:
        """Whether a figure is reliably better than guessing: by 1.6 standard errors."""
        spread = self.value * (1 - self.value) if self.value else 1.0
        return metric > self.value + _ERRORS * math.sqrt(spread / self.rows)


def guessing_on(checkpoint: Checkpoint, data: DataSet, metric: str) -> Guessing:
    """What guessing gets on some rows.

    Args:
        checkpoint: the model with its task.
        data: the rows.
        metric: name of the task's metric.
    """
    encoded = data.samples.encoded
    figures = checkpoint.task.guess(encoded, checkpoint.model.config).figures
    return Guessing(figures.get(metric, 0.0) if metric != "loss" else 0.0, encoded.samples)

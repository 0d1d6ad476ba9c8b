"""Sensitivity: how strongly the predictions depend on what a block adds, by token and by direction.

A small change e of a block's output y at one token changes the predictions by a divergence of about (g . e)^2 / 2, where g g^T,
on average, is the Fisher information of the model's own predictions with respect to y. No label is used. The information is
approximated by a weight of each token, |g|^2, and one matrix for all tokens, the mean of g g^T (K-FAC: Martens and Grosse,
*Optimizing Neural Networks with Kronecker-factored Approximate Curvature*, 2015; for pruning van der Ouderaa and others, *The
LLM Surgeon*, 2024). Where a head reads one position, the weights of all other tokens vanish in the last layer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from axformer.data.batches import Batch, Samples
from axformer.evaluation.signals import Signals
from axformer.intake.checkpoint import Checkpoint
from axformer.repair.refit import TokenWeights, matrix_of
from axformer.tasks.divergence import Predicts, probe

FLOOR = 0.05
"""The smallest weight of a token; the mean of all weights is about 1. Changes that are not small matter at other tokens too."""
EVENLY = 0.05
"""What is added to the matrix in every direction, for the same reason; the mean of its diagonal is 1 before."""


@dataclass(frozen=True)
class Sensitivity:
    """Of the predictions to the output of one block."""

    weights: TokenWeights
    """The weight of each token."""
    metric: Tensor
    """The matrix for the directions, shape (outputs, outputs), float64, positive definite."""


def sensitivities(
    checkpoint: Checkpoint, samples: Samples, check_cancelled: Callable[[], None] = lambda: None
) -> list[Sensitivity]:
    """The sensitivity to every block of an untouched model, on some data whose labels are not used."""
    model, architecture = checkpoint.model, checkpoint.architecture
    signals = Signals(model, architecture, samples)
    backs = [_to_outputs(matrix_of(block)) for block in signals.blocks()]
    weights: list[dict[int, Tensor]] = [{} for _ in backs]
    metrics = [torch.zeros(len(back), len(back), dtype=torch.float64, device=back.device) for back in backs]
    for batch, pairs in signals.slopes(partial(_probed, checkpoint.task)):
        check_cancelled()
        real = batch.inputs["attention_mask"].flatten(end_dim=-2).bool()
        for block, (_, slope) in enumerate(pairs):
            gradient = slope @ backs[block].T
            weights[block][int(batch.rows[0])] = gradient.square().sum(dim=-1) * real
            found = gradient[real]
            metrics[block] += (found.T @ found).double()
    tokens = int(samples.lengths.sum())
    return [Sensitivity(_floored(one, tokens), _evened(metric)) for one, metric in zip(weights, metrics, strict=True)]


def _probed(task: Predicts, output: Any, batch: Batch) -> Tensor:
    return probe(task.predicted(output, batch), batch.rows)


def _to_outputs(matrix: Tensor) -> Tensor:
    """Turns the derivative by the inputs x of y = W x into that by y, which is W x's pseudo-inverse transposed; (outputs, columns)."""
    return torch.linalg.pinv(matrix.double()).T.to(matrix.dtype)


def _floored(weights: dict[int, Tensor], tokens: int) -> TokenWeights:
    """The weights of all batches, scaled to a mean of 1 and then raised to the floor."""
    mean = sum(float(one.double().sum()) for one in weights.values()) / tokens
    return {row: (one / max(mean, 1e-30)).clamp(min=FLOOR) for row, one in weights.items()}


def _evened(metric: Tensor) -> Tensor:
    size = len(metric)
    scaled = metric * (size / max(float(metric.trace()), 1e-30))
    return scaled + EVENLY * torch.eye(size, dtype=metric.dtype, device=metric.device)

"""The error of losses in low precision: near a threshold, within this error, float32 decides.

The error is measured on the model and the data of the pass. It grows with the loss: low precision changes little where the
model is sure. So the spread of the error is measured separately for several ranges of the loss.

A sample counts as helped, or as not helped, only if its loss is further from the reference than six spreads. The error of a sum
of losses is bounded by twice their biases plus six standard deviations of a sum of independent errors.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

DEVIATIONS = 6.0
"""Width of the band in spreads."""
BIASES = 2.0
"""Factor of the mean error."""
RANGES = 10
"""Largest number of ranges of the loss."""
ROWS_IN_RANGE = 30
"""Smallest number of measured losses in a range."""


@dataclass(frozen=True)
class Guard:
    """The measured error of losses, in units of the loss."""

    bias: float
    """The mean error."""
    edges: Tensor
    """Boundaries between the ranges of the loss, ascending, shape (ranges - 1,)."""
    spreads: Tensor
    """The root mean squared error in each range, shape (ranges,), float64."""

    @classmethod
    def measured(cls, low: Tensor, exact: Tensor) -> "Guard":
        """Measure the error from the same losses in both precisions, shape (n,) each."""
        errors = (low - exact).double()
        count = max(1, min(RANGES, len(errors) // ROWS_IN_RANGE))
        if not errors.isfinite().all():
            return cls(math.inf, low.new_empty(0), torch.full((1,), math.inf, dtype=torch.float64))
        edges = torch.quantile(low, torch.linspace(0, 1, count + 1)[1:-1])
        ranges = torch.bucketize(low, edges)
        sums = torch.zeros(count, dtype=torch.float64).index_add_(0, ranges, errors.square())
        # If many losses are equal, a range may be empty; it gets the largest spread.
        means = sums / torch.bincount(ranges, minlength=count)
        return cls(errors.mean().item(), edges, means.nan_to_num(means.nan_to_num(0.0).max().item()).sqrt())

    def spread_of(self, losses: Tensor) -> Tensor:
        """The spread of the error of each of these losses, of the same shape, float64."""
        return self.spreads[torch.bucketize(losses, self.edges)]


def sum_band(guard: Guard, samples: int, variance: float) -> float:
    """The bound on the error of a sum of losses.

    Args:
        guard: the error of each loss.
        samples: number of losses.
        variance: the sum of their squared spreads.
    """
    return BIASES * abs(guard.bias) * samples + DEVIATIONS * math.sqrt(variance)

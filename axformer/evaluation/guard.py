"""How far losses in low precision may be from those in float32: the band near a line inside which float32 decides.

The error is measured on the model and the data of the pass. It is larger where the loss is: of a sample that the model is sure
of, low precision changes little. So its spread is measured for several ranges of the loss apart.

A sample counts as helped, or not, only where its loss is further from the reference than six spreads. A sum of losses is off by
their biases, taken twice, and six standard deviations of a sum of independent errors.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

DEVIATIONS = 6.0
"""Spreads of the band."""
BIASES = 2.0
"""How often the mean error is counted."""
RANGES = 10
"""Ranges of the loss, at most."""
ROWS_IN_RANGE = 30
"""Measured losses in a range, at least."""


@dataclass(frozen=True)
class Guard:
    """The measured error of losses, in units of the loss."""

    bias: float
    """Its mean."""
    edges: Tensor
    """Where one range of the loss ends and the next begins, ascending, shape (ranges - 1,)."""
    spreads: Tensor
    """The root of the mean squared error in each range, shape (ranges,), float64."""

    @classmethod
    def measured(cls, low: Tensor, exact: Tensor) -> "Guard":
        """From the same losses in both precisions, shape (n,) each."""
        errors = (low - exact).double()
        count = max(1, min(RANGES, len(errors) // ROWS_IN_RANGE))
        if not errors.isfinite().all():
            return cls(math.inf, low.new_empty(0), torch.full((1,), math.inf, dtype=torch.float64))
        edges = torch.quantile(low, torch.linspace(0, 1, count + 1)[1:-1])
        ranges = torch.bucketize(low, edges)
        sums = torch.zeros(count, dtype=torch.float64).index_add_(0, ranges, errors.square())
        # Where many losses are alike a range may be empty; the largest spread holds there.
        means = sums / torch.bincount(ranges, minlength=count)
        return cls(errors.mean().item(), edges, means.nan_to_num(means.nan_to_num(0.0).max().item()).sqrt())

    def spread_of(self, losses: Tensor) -> Tensor:
        """How far each of these losses may be off on average, of the same shape, float64."""
        return self.spreads[torch.bucketize(losses, self.edges)]


def sum_band(guard: Guard, samples: int, variance: float) -> float:
    """How far a sum of losses may be off.

    Args:
        guard: the error of each.
        samples: how many there are.
        variance: the sum of their squared spreads.
    """
    return BIASES * abs(guard.bias) * samples + DEVIATIONS * math.sqrt(variance)

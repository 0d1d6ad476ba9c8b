"""How far losses in low precision may be from those in float32: the band near a line inside which float32 decides.

The error is measured on the model and the data of the pass, as a mean and a spread over samples. What is made of many samples,
the mean loss and the number of helped samples, is off by much less than a sample, as errors of samples are independent. The
band is six standard deviations wide, of errors taken twice as large as they were measured.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

SAFETY = 2.0
"""Errors are taken this many times as large as they were measured."""
DEVIATIONS = 6.0
"""Standard deviations of what is summed."""


@dataclass(frozen=True)
class Guard:
    """The measured error of a sample's loss, in units of the loss."""

    bias: float
    """Its mean."""
    spread: float
    """Its standard deviation."""

    @classmethod
    def measured(cls, errors: Tensor) -> "Guard":
        """From the errors of some losses, shape (n,)."""
        if not errors.isfinite().all():
            return UNKNOWN
        return cls(errors.double().mean().item(), errors.double().std(correction=0).item())

    def sum_band(self, samples: int) -> float:
        """How far a sum of so many losses may be off."""
        return SAFETY * (abs(self.bias) * samples + DEVIATIONS * self.spread * math.sqrt(samples))

    def wrong_side(self, distance: Tensor) -> Tensor:
        """The probability that a loss lies on the other side of its reference than it seems to, at most a half.

        Args:
            distance: how far it seems to be from it, shape (samples,).
        """
        error = SAFETY * math.hypot(self.bias, self.spread)
        if error == 0:
            return torch.zeros(len(distance), dtype=torch.float64)
        probability: Tensor = torch.special.ndtr(-distance.double().abs() / error)
        return probability


EXACT = Guard(bias=0.0, spread=0.0)
"""Of float32 itself, which decides."""

UNKNOWN = Guard(bias=math.inf, spread=math.inf)
"""Low precision decides nothing."""

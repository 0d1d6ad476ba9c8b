"""What is known of a trial while its samples come in."""

import math

import torch
from torch import Tensor

from axformer.evaluation.base import Part
from axformer.evaluation.guard import DEVIATIONS, Guard, sum_band
from axformer.methods.axformer.acceptance import Bounds

SLACK = 1e-6
"""Relative; a mean of float32 numbers may round below a bound of the same mean, so bounds give way by this much."""


class Tally:
    """The losses of one trial so far, and what they can still come to.

    Losses of every task are at least 0, so samples that have not come yet may add nothing or any amount.
    """

    def __init__(self, total: int, reference: Tensor | None, *, ties_help: bool, guard: Guard | None = None) -> None:
        """
        Args:
            total: samples in the validation set.
            reference: the losses that samples are compared with, shape (samples,); null where nothing is compared.
            ties_help: whether an unchanged loss counts as helped.
            guard: how far the losses that come may be off; null where they are exact.
        """
        self._reference = reference
        self._ties_help = ties_help
        self._guard = guard
        self._sum = 0.0
        self._variance = 0.0
        self._certain = 0
        self._possible = 0
        self.losses = torch.full((total,), math.nan)
        """Shape (samples,); NaN where a sample has not come."""
        self.seen = 0
        """Samples that have come."""
        self.helped = 0
        """Those of them whose loss went down against the reference."""

    def add(self, part: Part) -> None:
        """Take in the losses of some samples."""
        self.losses[part.places] = part.losses
        self.seen += len(part.places)
        self._sum += part.losses.double().sum().item()
        if self._reference is not None:
            self._compare(part.losses, self._reference[part.places])

    @property
    def is_complete(self) -> bool:
        """Whether every sample has come."""
        return self.seen == len(self.losses)

    @property
    def loss(self) -> float:
        """The mean loss, or while samples are missing a lower bound of it."""
        return self.losses.mean().item() if self.is_complete else self.bounds.loss[0]

    @property
    def band(self) -> float:
        """How far the mean loss may be off, by the guard."""
        return 0.0 if self._guard is None else sum_band(self._guard, self.seen, self._variance) / len(self.losses)

    @property
    def bounds(self) -> Bounds:
        """Between what the mean loss and the number of helped samples lie."""
        total, band = len(self.losses), self.band
        if self.is_complete:
            loss = self.losses.mean().item()
            return Bounds((loss - band, loss + band), (self._certain, self._possible))
        low = self._sum / total * (1 - SLACK) - band
        return Bounds((low, math.inf), (self._certain, self._possible + total - self.seen))

    def _compare(self, losses: Tensor, reference: Tensor) -> None:
        """Count the samples that are helped, those that are so for certain, and those that may be."""
        band = torch.zeros(len(losses), dtype=torch.float64)
        if self._guard is not None:
            spread = self._guard.spread_of(losses)
            self._variance += spread.square().sum().item()
            band = DEVIATIONS * spread
        change = losses.double() - reference.double()
        self.helped += self._count(change)
        self._certain += self._count(change + band)
        self._possible += self._count(change - band)

    def _count(self, change: Tensor) -> int:
        return int((change <= 0).sum() if self._ties_help else (change < 0).sum())

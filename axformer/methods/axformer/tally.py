"""Running result of a trial while its samples arrive."""

import math

import torch
from torch import Tensor

from axformer.evaluation.base import Part
from axformer.evaluation.guard import DEVIATIONS, Guard, sum_band
from axformer.methods.axformer.acceptance import Bounds

SLACK = 1e-6
"""Relative slack of the bounds: a float32 mean may round to slightly less than a lower bound of the same mean."""


class Tally:
    """The losses of one trial so far, and bounds on its final result.

    A loss is at least 0 in every task, so a missing sample may add nothing or any amount.
    """

    def __init__(self, total: int, reference: Tensor | None, *, ties_help: bool, guard: Guard | None = None) -> None:
        """
        Args:
            total: number of samples in the validation set.
            reference: losses to compare with, shape (samples,); None if nothing is compared.
            ties_help: whether an unchanged loss counts as helped.
            guard: the error bound of the losses; None if they are exact.
        """
        self._reference = reference
        self._ties_help = ties_help
        self._guard = guard
        self._sum = 0.0
        self._variance = 0.0
        self._certain = 0
        self._possible = 0
        self.losses = torch.full((total,), math.nan)
        """Shape (samples,); NaN for samples that have not arrived."""
        self.seen = 0
        """Number of samples that have arrived."""
        self.helped = 0
        """How many of those have a lower loss than the reference."""

    def add(self, part: Part) -> None:
        """Add the losses of some samples."""
        self.losses[part.places] = part.losses
        self.seen += len(part.places)
        self._sum += part.losses.double().sum().item()
        if self._reference is not None:
            self._compare(part.losses, self._reference[part.places])

    @property
    def is_complete(self) -> bool:
        """Whether every sample has arrived."""
        return self.seen == len(self.losses)

    @property
    def loss(self) -> float:
        """The mean loss, or a lower bound of it while samples are missing."""
        return self.losses.mean().item() if self.is_complete else self.bounds.loss[0]

    @property
    def band(self) -> float:
        """The error bound of the mean loss, by the guard."""
        return 0.0 if self._guard is None else sum_band(self._guard, self.seen, self._variance) / len(self.losses)

    @property
    def bounds(self) -> Bounds:
        """Bounds of the mean loss and of the number of helped samples."""
        total, band = len(self.losses), self.band
        if self.is_complete:
            loss = self.losses.mean().item()
            return Bounds((loss - band, loss + band), (self._certain, self._possible))
        low = self._sum / total * (1 - SLACK) - band
        return Bounds((low, math.inf), (self._certain, self._possible + total - self.seen))

    def _compare(self, losses: Tensor, reference: Tensor) -> None:
        """Count the samples that are helped, those that certainly are, and those that may be."""
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

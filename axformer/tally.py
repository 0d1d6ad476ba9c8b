"""What is known of a trial while its samples come in."""

import math

import torch
from torch import Tensor

from axformer.acceptance import Bounds
from axformer.evaluation.base import Part
from axformer.guard import DEVIATIONS, EXACT, Guard

SLACK = 1e-6
"""Relative; a mean of float32 numbers may round below a bound of the same mean, so bounds give way by this much."""


class Tally:
    """The losses of one trial so far, and what they can still come to.

    Losses of every task are at least 0, so samples that have not come yet may add nothing or any amount.
    """

    def __init__(self, total: int, reference: Tensor | None, *, ties_help: bool, guard: Guard = EXACT) -> None:
        """
        Args:
            total: samples in the validation set.
            reference: the losses that samples are compared with, shape (samples,); null where nothing is compared.
            ties_help: whether an unchanged loss counts as helped.
            guard: how far the losses that come may be off.
        """
        self._reference = reference
        self._ties_help = ties_help
        self._guard = guard
        self._sum = 0.0
        self._shift = 0.0
        self._variance = 0.0
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
    def bounds(self) -> Bounds:
        """Between what the mean loss and the number of helped samples lie."""
        total = len(self.losses)
        helped = self._helped_band()
        if self.is_complete:
            loss, band = self.losses.mean().item(), self._guard.sum_band(total) / total
            return Bounds((loss - band, loss + band), helped)
        low = (self._sum * (1 - SLACK) - self._guard.sum_band(self.seen)) / total
        return Bounds((max(0.0, low), math.inf), (helped[0], helped[1] + total - self.seen))

    def _compare(self, losses: Tensor, reference: Tensor) -> None:
        helps = losses <= reference if self._ties_help else losses < reference
        self.helped += int(helps.sum())
        if self._guard is not EXACT:
            wrong = self._guard.wrong_side(losses - reference)
            self._shift += torch.where(helps, -wrong, wrong).sum().item()
            self._variance += (wrong * (1 - wrong)).sum().item()

    def _helped_band(self) -> tuple[int, int]:
        """Between what the number of helped samples among those that have come lies."""
        band = DEVIATIONS * math.sqrt(self._variance)
        low, high = self.helped + self._shift - band, self.helped + self._shift + band
        return max(0, math.floor(low)), min(self.seen, math.ceil(high))

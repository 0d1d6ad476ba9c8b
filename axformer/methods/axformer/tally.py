"""Running result of a trial while its samples arrive."""

import math

import torch
from torch import Tensor

from axformer.evaluation.base import Part
from axformer.methods.axformer.acceptance import Bounds

SLACK = 1e-6
"""Relative slack of the bounds: a float32 mean may round to slightly less than a lower bound of the same mean."""


class Tally:
    """The losses of one trial so far, and bounds on its final result.

    A loss is at least 0 in every task, so a missing sample may add nothing or any amount.
    """

    def __init__(self, total: int, reference: Tensor | None, *, ties_help: bool) -> None:
        """
        Args:
            total: number of samples in the validation set.
            reference: losses to compare with, shape (samples,); None if nothing is compared.
            ties_help: whether an unchanged loss counts as helped.
        """
        self._reference = reference
        self._ties_help = ties_help
        self._sum = 0.0
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
            self.helped += self._count_helped(part.losses, self._reference[part.places])

    @property
    def is_complete(self) -> bool:
        """Whether every sample has arrived."""
        return self.seen == len(self.losses)

    @property
    def loss(self) -> float:
        """The mean loss, or a lower bound of it while samples are missing."""
        return self.losses.mean().item() if self.is_complete else self.bounds.loss[0]

    @property
    def bounds(self) -> Bounds:
        """Bounds of the mean loss and of the number of helped samples."""
        total = len(self.losses)
        if self.is_complete:
            loss = self.losses.mean().item()
            return Bounds((loss, loss), (self.helped, self.helped))
        low = self._sum / total * (1 - SLACK)
        return Bounds((low, math.inf), (self.helped, self.helped + total - self.seen))

    def _count_helped(self, losses: Tensor, reference: Tensor) -> int:
        return int((losses <= reference).sum() if self._ties_help else (losses < reference).sum())

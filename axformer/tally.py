"""What is known of a trial while its samples come in."""

import math

import torch
from torch import Tensor

from axformer.acceptance import Bounds
from axformer.evaluation.base import Part

SLACK = 1e-6
"""Relative; a mean of float32 numbers may round below a bound of the same mean, so bounds give way by this much."""


class Tally:
    """The losses of one trial so far, and what they can still come to.

    Losses of every task are at least 0, so samples that have not come yet may add nothing or any amount.
    """

    def __init__(self, total: int, reference: Tensor | None, *, ties_help: bool) -> None:
        """
        Args:
            total: samples in the validation set.
            reference: the losses that samples are compared with, shape (samples,); null where nothing is compared.
            ties_help: whether an unchanged loss counts as helped.
        """
        self._reference = reference
        self._ties_help = ties_help
        self._sum = 0.0
        self._helped = 0
        self.losses = torch.full((total,), math.nan)
        """Shape (samples,); NaN where a sample has not come."""
        self.seen = 0
        """Samples that have come."""

    def add(self, part: Part) -> None:
        """Take in the losses of some samples."""
        self.losses[part.places] = part.losses
        self.seen += len(part.places)
        self._sum += part.losses.double().sum().item()
        if self._reference is not None:
            reference = self._reference[part.places]
            helps = part.losses <= reference if self._ties_help else part.losses < reference
            self._helped += int(helps.sum())

    @property
    def bounds(self) -> Bounds:
        """Between what the mean loss and the number of helped samples lie."""
        total = len(self.losses)
        if self.seen == total:
            loss = self.losses.mean().item()
            return Bounds((loss, loss), (self._helped, self._helped))
        return Bounds(
            (self._sum / total * (1 - SLACK), math.inf),
            (self._helped, self._helped + total - self.seen),
        )

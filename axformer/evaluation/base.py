"""The one question that a search asks of a model, so that slow and fast ways to answer it can stand in for each other."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.data.batches import Samples
from axformer.plan.plan import Plan


@dataclass(frozen=True)
class Part:
    """The losses of some samples, or of some model rows."""

    places: Tensor
    """Where they are in the data, shape (n,), on the CPU."""
    losses: Tensor
    """Shape (n,), float32, on the CPU."""


class Evaluator(ABC):
    """Measures what a plan does to each validation sample."""

    @property
    @abstractmethod
    def precision(self) -> str:
        """The arithmetic of its forward passes, for example ``float32``."""

    @property
    @abstractmethod
    def total(self) -> int:
        """How many samples there are."""

    @abstractmethod
    def parts(self, plan: Plan) -> Iterator[Part]:
        """The losses of the samples under a plan, some samples at a time, each once. Who has seen enough may stop asking."""

    @abstractmethod
    def accept(self, plan: Plan) -> None:
        """Learn that all plans to come are this one with one more change."""

    @abstractmethod
    def see_first(self, samples: Tensor | None) -> None:
        """Begin plans to come with parts that hold many of these samples; None for the shortest. It changes no loss.

        Args:
            samples: which, bool of shape (samples,).
        """

    def losses(self, plan: Plan) -> Tensor:
        """The loss of each sample under a plan, in the order of the data, shape (samples,), float32, on the CPU."""
        return together(self.parts(plan))


def together(parts: Iterable[Part]) -> Tensor:
    """All losses in order, shape (samples,) where the parts hold all samples."""
    everything = list(parts)
    places = torch.cat([part.places for part in everything])
    losses = torch.empty(len(places))
    losses[places] = torch.cat([part.losses for part in everything])
    return losses


def by_sample(parts: Iterable[Part], samples: Samples) -> Iterator[Part]:
    """From losses of model rows to losses of samples; a sample comes when the last of its rows has come."""
    if samples.one_row_each:
        yield from parts
        return
    sums = torch.zeros(len(samples), dtype=torch.float64)
    rows = torch.bincount(samples.sample_of_row)
    missing = rows.clone()
    for part in parts:
        touched = samples.sample_of_row[part.places]
        sums.index_add_(0, touched, part.losses.double())
        missing.index_add_(0, touched, torch.full_like(touched, -1))
        done = torch.unique(touched)
        done = done[missing[done] == 0]
        yield Part(done, (sums[done] / rows[done]).float())

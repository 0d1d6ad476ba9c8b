"""The interface of evaluators, which measure the losses of a plan; slow and fast ones are interchangeable."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from axformer.data.batches import Samples
from axformer.plan.plan import Plan


@dataclass(frozen=True)
class Part:
    """The losses of some samples, or of some model rows."""

    places: Tensor
    """Indices of the samples or model rows in the data, shape (n,), on the CPU."""
    losses: Tensor
    """Shape (n,), float32, on the CPU."""


class Evaluator(ABC):
    """Measures the loss of each validation sample under a plan. Used as a context manager; caches are kept for the next use."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release what is needed only inside the context: nothing, unless an evaluator says otherwise."""
        return

    @property
    @abstractmethod
    def precision(self) -> str:
        """The arithmetic of the forward passes, for example ``float32``."""

    @property
    @abstractmethod
    def total(self) -> int:
        """The number of samples."""

    @abstractmethod
    def parts(self, plan: Plan) -> Iterator[Part]:
        """Yield the losses of all samples under a plan, some samples at a time. The caller may stop iterating early."""

    @abstractmethod
    def accept(self, plan: Plan) -> None:
        """Make a plan the current one. All further plans differ from it by one change."""

    @abstractmethod
    def see_first(self, samples: Tensor | None) -> None:
        """Evaluate further plans in an order that begins with parts rich in these samples. It does not change any loss.

        Args:
            samples: a mask of samples, bool of shape (samples,); None to begin with the shortest.
        """

    def losses(self, plan: Plan) -> Tensor:
        """The loss of each sample under a plan, in the order of the data, shape (samples,), float32, on the CPU."""
        return together(self.parts(plan))


def together(parts: Iterable[Part]) -> Tensor:
    """Combine parts into the losses of all samples, shape (samples,), in the order of the data."""
    everything = list(parts)
    places = torch.cat([part.places for part in everything])
    losses = torch.empty(len(places))
    losses[places] = torch.cat([part.losses for part in everything])
    return losses


def by_sample(parts: Iterable[Part], samples: Samples) -> Iterator[Part]:
    """Turn losses of model rows into losses of samples. A sample is yielded once all of its rows are known."""
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

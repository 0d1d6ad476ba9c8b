"""The interface of evaluators, which measure the losses of a plan; slow and fast ones are interchangeable.

Losses arrive in parts, on a GPU while later batches are computed.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor, nn

from axformer.data.batches import Samples
from axformer.plan.plan import LayerPlan, Plan


@dataclass(frozen=True)
class Part:
    """The losses of some samples, or of some model rows."""

    places: Tensor
    """Indices of the samples or model rows in the data, shape (n,), on the CPU."""
    losses: Tensor
    """Shape (n,), float32, on the CPU."""


class Evaluator(ABC):
    """Measures the loss of each validation sample under a plan. Used as a context manager; caches are kept for the next use."""

    samples: Samples
    """The data."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release what is needed only inside the context: nothing, unless an evaluator says otherwise."""
        return

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
        parts = list(self.parts(plan))
        places = torch.cat([part.places for part in parts])
        losses = torch.empty(len(places))
        losses[places] = torch.cat([part.losses for part in parts])
        return losses


class Fitting(Protocol):
    """Fits the remaining weights of a plan. The weights of a layer are a function of the layer's plan alone."""

    def prepare(self, plan: Plan) -> None:
        """Compute the weights of a plan, using all cores."""

    def fit(self, index: int, layer: nn.Module, plan: LayerPlan) -> None:
        """Put the weights into layer number ``index``, which was cut as in its plan. The plan must have been prepared."""


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


AHEAD_ON_GPU = 1
"""Number of batches that a GPU is given before the losses of an earlier one are read, so that it never waits for the CPU. When
a trial is decided early, this many batches were run in vain."""


_Arrival = tuple[Part, torch.cuda.Event | None]
"""A part whose losses may still be in transfer, and the end of the transfer."""


def arriving(computed: Iterable[tuple[Tensor, Tensor]], ahead: int) -> Iterator[Part]:
    """Parts in main memory, in order.

    Args:
        computed: indices on the CPU and losses on the device, as they are computed.
        ahead: number of batches computed before the first of them is read.
    """
    waiting: deque[_Arrival] = deque()
    for places, losses in computed:
        waiting.append(_sent(places, losses))
        if len(waiting) > ahead:
            yield _awaited(*waiting.popleft())
    while waiting:
        yield _awaited(*waiting.popleft())


def _awaited(part: Part, arrived: torch.cuda.Event | None) -> Part:
    if arrived is not None:
        arrived.synchronize()
    return part


def _sent(places: Tensor, losses: Tensor) -> _Arrival:
    if losses.device.type != "cuda":
        return Part(places, losses.cpu()), None
    target = torch.empty(losses.shape, dtype=losses.dtype, pin_memory=True)
    target.copy_(losses, non_blocking=True)
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record()
    return Part(places, target), arrived

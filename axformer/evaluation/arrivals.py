"""Asynchronous transfer of losses from the device to main memory."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.evaluation.base import Part

AHEAD_ON_GPU = 1
"""Number of batches that a GPU is given before the losses of an earlier one are read, so that it never waits for the CPU. When
a trial is decided early, this many batches were run in vain."""


@dataclass(frozen=True)
class _Arrival:
    """A part whose losses may still be in transfer."""

    part: Part
    arrived: torch.cuda.Event | None

    def wait(self) -> Part:
        if self.arrived is not None:
            self.arrived.synchronize()
        return self.part


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
            yield waiting.popleft().wait()
    while waiting:
        yield waiting.popleft().wait()


def _sent(places: Tensor, losses: Tensor) -> _Arrival:
    if losses.device.type != "cuda":
        return _Arrival(Part(places, losses.cpu()), None)
    target = torch.empty(losses.shape, dtype=losses.dtype, pin_memory=True)
    target.copy_(losses, non_blocking=True)
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record()
    return _Arrival(Part(places, target), arrived)

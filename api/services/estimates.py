"""Estimate start and end of waiting jobs by assigning the line to the workers in order."""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from axformer.wire.devices import Device


class Busy(NamedTuple):
    """A living worker."""

    device: Device
    """``any`` if it is unknown."""
    seconds: float | None
    """Seconds until it is free: 0 if idle, None if unknown."""


class Demand(NamedTuple):
    """A job that waits."""

    device: Device
    seconds: float | None
    """Seconds of worker time that it needs; None if unknown."""


class WaitingTime(NamedTuple):
    """Seconds from now; None if unknown."""

    starts: float | None
    ends: float | None


UNKNOWN = WaitingTime(None, None)


class _Workers:
    """Workers of one device by the time they become free, which may be unknown."""

    def __init__(self, workers: Sequence[Busy]) -> None:
        self.known = [worker.seconds for worker in workers if worker.seconds is not None]
        self.unknown = len(workers) - len(self.known)
        heapq.heapify(self.known)


def estimates(workers: Sequence[Busy], line: Sequence[Demand]) -> list[WaitingTime]:
    """When each job in the line starts and ends, if no other job is posted."""
    kinds = {kind: _Workers([worker for worker in workers if worker.device is kind]) for kind in Device}
    alive = {kind: those for kind, those in kinds.items() if those.known or those.unknown}
    able = {wanted: [those for kind, those in alive.items() if can_take(kind, wanted)] for wanted in Device}
    return [_give(seconds, able[device]) for device, seconds in line]


def can_take(worker: Device, wanted: Device) -> bool:
    """Whether a worker may take a job that asks for a device; a worker whose device is unknown may take all."""
    return Device.ANY in (worker, wanted) or worker is wanted


def _give(seconds: float | None, candidates: Sequence[_Workers]) -> WaitingTime:
    """Assign a job of some seconds to the candidate that is free first."""
    first, unknown = None, 0
    for workers in candidates:
        unknown += workers.unknown
        if workers.known and (first is None or workers.known[0] < first.known[0]):
            first = workers
    if first is None:
        return UNKNOWN
    start = first.known[0]
    if start > 0 and unknown:
        return UNKNOWN  # another may be free before
    if seconds is None:
        heapq.heappop(first.known)
        first.unknown += 1
        return WaitingTime(start, None)
    heapq.heapreplace(first.known, start + seconds)
    return WaitingTime(start, start + seconds)

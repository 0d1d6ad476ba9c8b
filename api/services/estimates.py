"""Estimate start and end of waiting jobs by assigning the line to the workers in order."""

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from axformer.wire.devices import Device, can_take


class Busy(NamedTuple):
    """A living worker."""

    device: Device
    """``any`` if it is unknown."""
    seconds: float | None
    """Seconds until it is free: 0 if idle, None if unknown."""
    memory: int | None = None
    """Bytes that its device has; None if it is unknown."""


class Demand(NamedTuple):
    """A job that waits."""

    device: Device
    seconds: float | None
    """Seconds of worker time that it needs; None if unknown."""
    memory: Mapping[str, int] | None = None
    """What is known of the memory that it needs."""


class WaitingTime(NamedTuple):
    """Seconds from now; None if unknown."""

    starts: float | None
    ends: float | None


UNKNOWN = WaitingTime(None, None)


class _Workers:
    """Workers of one device and memory by the time they become free, which may be unknown."""

    def __init__(self, workers: Sequence[Busy]) -> None:
        self.known = [worker.seconds for worker in workers if worker.seconds is not None]
        self.unknown = len(workers) - len(self.known)
        heapq.heapify(self.known)


def estimates(workers: Sequence[Busy], line: Sequence[Demand]) -> list[WaitingTime]:
    """When each job in the line starts and ends, if no other job is posted."""
    kinds = dict.fromkeys((worker.device, worker.memory) for worker in workers)
    alive = {kind: _Workers([one for one in workers if (one.device, one.memory) == kind]) for kind in kinds}
    return [
        _give(job.seconds, [those for kind, those in alive.items() if can_take(*kind, job.device, job.memory)])
        for job in line
    ]


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

"""When workers become free for the jobs that wait, given what each takes: the line is handed to them in order."""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from axformer.wire.devices import Device


class Busy(NamedTuple):
    """A living worker."""

    device: Device
    """``any`` where it is not known."""
    seconds: float | None
    """Until it is free: 0 for an idle one, None if it cannot be said."""


class Demand(NamedTuple):
    """A job that waits."""

    device: Device
    seconds: float | None
    """Of a worker's time that it takes; None if it cannot be said."""


class WaitingTime(NamedTuple):
    """Seconds from now; None if it cannot be said."""

    starts: float | None
    ends: float | None


UNKNOWN = WaitingTime(None, None)


class _Workers:
    """Workers of one device by when they are free; of some it is not known."""

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
    """Whether a worker with one device may take a job that asks for another; one that is not known may take all."""
    return Device.ANY in (worker, wanted) or worker is wanted


def _give(seconds: float | None, candidates: Sequence[_Workers]) -> WaitingTime:
    """Let the first worker of the candidates to be free take a job of so many seconds."""
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

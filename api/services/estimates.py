"""When workers become free for the jobs that wait, given what each takes: the line is handed to them in order."""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from store.devices import Device


class Busy(NamedTuple):
    """A living worker."""

    device: Device
    """``any`` where it is not known."""
    seconds: float | None
    """Until it is free: 0 of an idle one, null where it cannot be said."""


class Demand(NamedTuple):
    """A job that waits."""

    device: Device
    seconds: float | None
    """Of a worker's time that it takes; null where it cannot be said."""


class Estimate(NamedTuple):
    """Seconds from now; null where it cannot be said."""

    starts: float | None
    ends: float | None


UNKNOWN = Estimate(None, None)


class _Workers:
    """Workers of one device by when they are free; of some it is not known."""

    def __init__(self, workers: Sequence[Busy]) -> None:
        self.known = [worker.seconds for worker in workers if worker.seconds is not None]
        self.unknown = len(workers) - len(self.known)
        heapq.heapify(self.known)


def estimates(workers: Sequence[Busy], line: Sequence[Demand]) -> list[Estimate]:
    """When each job in the line starts and ends, if no other job is posted."""
    kinds = {kind: _Workers([worker for worker in workers if worker.device is kind]) for kind in Device}
    able = {wanted: [kinds[kind] for kind in Device if can_take(kind, wanted)] for wanted in Device}
    return [_give(job, able[job.device]) for job in line]


def can_take(worker: Device, wanted: Device) -> bool:
    """Whether a worker with one device may take a job that asks for another; one that is not known may take all."""
    return Device.ANY in (worker, wanted) or worker is wanted


def _give(job: Demand, candidates: Sequence[_Workers]) -> Estimate:
    """Let the first worker of the candidates to be free take the job."""
    first = min((workers for workers in candidates if workers.known), key=_next_free, default=None)
    if first is None:
        return UNKNOWN
    start = first.known[0]
    if start > 0 and any(workers.unknown for workers in candidates):
        return UNKNOWN  # another may be free before
    if job.seconds is None:
        heapq.heappop(first.known)
        first.unknown += 1
        return Estimate(start, None)
    heapq.heapreplace(first.known, start + job.seconds)
    return Estimate(start, start + job.seconds)


def _next_free(workers: _Workers) -> float:
    return workers.known[0]

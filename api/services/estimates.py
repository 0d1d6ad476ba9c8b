"""When workers become free for the jobs that wait, given what each takes: the line is handed to them in order."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from store.devices import Device


@dataclass(frozen=True)
class Busy:
    """A living worker."""

    device: Device
    """``any`` where it is not known."""
    seconds: float | None
    """Until it is free: 0 of an idle one, null where it cannot be said."""


@dataclass(frozen=True)
class Demand:
    """A job that waits."""

    device: Device
    seconds: float | None
    """Of a worker's time that it takes; null where it cannot be said."""


@dataclass(frozen=True)
class Estimate:
    """Seconds from now; null where it cannot be said."""

    starts: float | None
    ends: float | None


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
    free = [workers for workers in candidates if workers.known]
    if not free:
        return Estimate(None, None)
    first = min(free, key=lambda workers: workers.known[0])
    start = first.known[0]
    if start > 0 and any(workers.unknown for workers in candidates):
        return Estimate(None, None)  # another may be free before
    heapq.heappop(first.known)
    if job.seconds is None:
        first.unknown += 1
        return Estimate(start, None)
    heapq.heappush(first.known, start + job.seconds)
    return Estimate(start, start + job.seconds)

"""A snapshot of the queue of all teams: waiting jobs, workers, and when each job may start and end.

The estimate assigns the line, in order, to the living workers: an idle one is free now, a busy one when its job or its time
slice is expected to end. If a figure is missing, so is the estimate.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from sqlalchemy.orm import Session

from api.services.estimates import Busy, Demand, WaitingTime, estimates
from axformer.wire.devices import Device
from store.repositories import queue as repository
from store.repositories.line import rules_of
from store.repositories.queue import Waiting
from store.repositories.workers import living_workers
from store.session import Sessions, session_scope
from store.settings import Settings
from store.tables.jobs import Job, work_of


@dataclass(frozen=True)
class Living:
    """A worker that is alive."""

    name: str | None
    """None, like its queue, if it has not registered but is known to be alive because it holds a job."""
    queue: str | None
    job: Job | None
    """The job that it holds."""
    time: Busy
    """Time until it has finished the job that it holds."""
    slice: Busy
    """Time until it has finished that job, or the job's time slice is over."""


@dataclass(frozen=True)
class QueueView:
    """A snapshot of the queue of all teams."""

    line: Sequence[Waiting]
    by_id: Mapping[str, Waiting]
    """The line by job id."""
    estimates: Mapping[str, WaitingTime]
    """Estimates by job id, without jobs that a limit holds back."""
    active: Sequence[Job]
    ends: Mapping[str, float | None]
    """Seconds until each active job ends, by its id."""
    workers: Sequence[Living]
    typical: Mapping[str, float]
    """Assumed seconds of a pass without its own measurements, by the work that a job is: the median of the last jobs."""
    slice_seconds: float
    as_of: datetime


class Views:
    """The latest view, shared by all callers within ``queue_view_seconds``, since a long queue is costly to read and has many
    watchers."""

    def __init__(self, sessions: Sessions, settings: Settings) -> None:
        self._sessions = sessions
        self._settings = settings
        self._making = threading.Lock()
        self._latest: tuple[float, QueueView] | None = None

    def get(self) -> QueueView:
        """The latest view, or a new one if it is too old. While one caller reads the new one, others get the old one."""
        if (young := self._young()) is not None:
            return young
        if not self._making.acquire(blocking=self._latest is None):
            assert self._latest is not None, "it never becomes None again"
            return self._latest[1]
        try:
            return self._young() or self._make()
        finally:
            self._making.release()

    def _young(self) -> QueueView | None:
        if self._latest is None:
            return None
        made_at, view = self._latest
        return view if time.monotonic() - made_at < self._settings.queue_view_seconds else None

    def _make(self) -> QueueView:
        began = time.monotonic()
        with session_scope(self._sessions) as session:
            view = view_now(session, self._settings)
        self._latest = began, view
        return view


def view_now(session: Session, settings: Settings) -> QueueView:
    """The queue now."""
    now = datetime.now(UTC)
    active = repository.active_jobs(session)
    recent = repository.recent_pass_seconds(session, settings.eta_sample)
    typical = {work: median(seconds) for work, seconds in recent.items()}
    ends = {job.id: _seconds_left(job, typical.get(work_of(job)), now) for job in active}
    known = {worker.process: worker for worker in living_workers(session, settings.lease_seconds)}
    held = {str(job.worker): job for job in active}
    workers = []
    for process in known | held:
        worker, job = known.get(process), held.get(process)
        name, queue = (None, None) if worker is None else (worker.name, worker.queue)
        device, memory = (Device.ANY, None) if worker is None else (worker.device, worker.memory)
        left = 0.0 if job is None else ends[job.id]
        over = 0.0 if job is None else _slice_left(job, settings.slice_seconds, now)
        shorter = Busy(device, over if left is None else min(left, over), memory)
        workers.append(Living(name, queue, job, Busy(device, left, memory), shorter))
    line = repository.waiting_jobs(session, rules_of(settings))
    return QueueView(
        line=line,
        by_id={job.job_id: job for job in line},
        estimates=_estimates(line, workers, typical, settings.slice_seconds),
        active=active,
        ends=ends,
        workers=workers,
        typical=typical,
        slice_seconds=settings.slice_seconds,
        as_of=now,
    )


def _estimates(
    line: Sequence[Waiting], workers: Sequence[Living], typical: Mapping[str, float], slice_seconds: float
) -> Mapping[str, WaitingTime]:
    """When jobs start, if those ahead yield after a slice, and when they end, if none does."""
    # A job that a limit holds back starts when a job of its team ends, so it is left out of the line.
    free = [job for job in line if not job.held_back]
    demands = [
        Demand(job.device, typical.get(job.work) if job.seconds_left is None else job.seconds_left, job.memory)
        for job in free
    ]
    slices = [demand._replace(seconds=min(demand.seconds or slice_seconds, slice_seconds)) for demand in demands]
    starts = estimates([worker.slice for worker in workers], slices)
    ends = estimates([worker.time for worker in workers], demands)
    return {job.job_id: WaitingTime(start.starts, end.ends) for job, start, end in zip(free, starts, ends, strict=True)}


def _slice_left(job: Job, slice_seconds: float, now: datetime) -> float:
    """Seconds until a job may have to yield; unlike the worker, this counts loading and replaying."""
    held = 0.0 if job.claimed_at is None else (now - job.claimed_at).total_seconds()
    return max(0.0, slice_seconds - held)


def _seconds_left(job: Job, typical: float | None, now: datetime) -> float | None:
    """Seconds until a worker has finished the job that it holds."""
    left = (job.progress or {}).get("seconds_left")
    if left is not None:
        return max(0.0, float(left))
    if typical is None or job.claimed_at is None:
        return None
    return max(0.0, typical - job.worker_seconds - (now - job.claimed_at).total_seconds())

"""Where a team's jobs stand in the queue, and when they may begin and end.

The estimate hands the queue, in order, to the workers that are busy now: each is free when its job's measured seconds are
over, and every queued job takes the median of the last finished ones. Where a figure is missing, so is the estimate.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from sqlalchemy.orm import Session

from store.repositories import queue as repository
from store.settings import Settings
from store.states import JobState
from store.tables.jobs import Job

METHOD = (
    "Running jobs: known trials left times the measured seconds a trial, else the median run time less the time so far. "
    "Queued jobs: given in queue order to the {workers} workers that are busy now as they get free, each job taking the "
    "median run time of the last {sample} succeeded jobs{median}. Jobs that are posted later with a higher priority come "
    "first; idle workers are not counted."
)


@dataclass(frozen=True)
class Estimate:
    """Seconds from now; null where it cannot be said."""

    starts: float | None
    ends: float | None


@dataclass(frozen=True)
class Queue:
    """The queue as a team sees it."""

    active: Sequence[Job]
    queued: Sequence[tuple[int, Job]]
    """The team's queued jobs with their positions, from 1."""
    queued_of_all_teams: int
    counts: Mapping[JobState, int]
    workers: int
    estimates: Mapping[str, Estimate]
    """By the job's id."""
    method: str
    as_of: datetime


def look(session: Session, settings: Settings, team_id: str) -> Queue:
    """The queue now."""
    now = datetime.now(UTC)
    active = repository.active_jobs(session)
    queued = repository.queued_positions(session, team_id, settings.page_limit_max)
    recent = repository.recent_run_seconds(session, settings.eta_sample)
    typical = median(recent) if recent else None
    ends = {job.id: _seconds_left(job, typical, now) for job in active}
    starts = starting_times(list(ends.values()), queued[-1][0] if queued else 0, typical)
    running = {job_id: Estimate(None, left) for job_id, left in ends.items()}
    return Queue(
        active=[job for job in active if job.team_id == team_id],
        queued=queued,
        queued_of_all_teams=repository.queue_length(session),
        counts=repository.state_counts(session, team_id),
        workers=len(active),
        estimates=running | {job.id: _queued(starts[position - 1], typical) for position, job in queued},
        method=METHOD.format(
            workers=len(active), sample=len(recent), median="" if typical is None else f", {typical:.1f} s"
        ),
        as_of=now,
    )


def starting_times(busy_for: Sequence[float | None], waiting: int, typical: float | None) -> list[float | None]:
    """When each waiting job starts, in seconds, given for how long each worker is busy and what a job takes."""
    if typical is None or not busy_for or None in busy_for:
        return [None] * waiting
    free = [seconds for seconds in busy_for if seconds is not None]
    heapq.heapify(free)
    starts: list[float | None] = []
    for _ in range(waiting):
        start = heapq.heappop(free)
        starts.append(start)
        heapq.heappush(free, start + typical)
    return starts


def _queued(start: float | None, typical: float | None) -> Estimate:
    return Estimate(start, None if start is None or typical is None else start + typical)


def _seconds_left(job: Job, typical: float | None, now: datetime) -> float | None:
    left = (job.progress or {}).get("seconds_left")
    if left is not None:
        return max(0.0, float(left))
    if typical is None or job.started_at is None:
        return None
    return max(0.0, typical - (now - job.started_at).total_seconds())

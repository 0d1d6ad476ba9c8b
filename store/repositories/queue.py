"""The queue as a whole: the waiting jobs, the number of jobs in each state, and recent run times."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Double, cast, func, select
from sqlalchemy.orm import Session

from axformer.wire.devices import Device
from store.repositories.line import DEFAULT_RULES, Rules, the_line
from store.states import JobState
from store.tables.jobs import WORK, Job

_LOOKED_BACK = 10
"""As many kinds of work find their jobs where they are equally frequent."""


class Waiting(NamedTuple):
    """A job that waits for a worker."""

    job_id: str
    name: str
    state: JobState
    team_id: str
    device: Device
    memory: Mapping[str, int] | None
    """What is known of the memory that it needs (:class:`axformer.wire.devices.MemoryNeed`)."""
    place: int
    """Place in the line of all teams, from 1."""
    held_back: bool
    """Whether its team's limit of running jobs prevents claiming it now."""
    running_limit: int | None
    """That limit; None if there is none."""
    work: str
    """What the job is (:func:`store.tables.jobs.work_of`)."""
    seconds_left: float | None
    """Measured estimate for a job that has begun."""


def waiting_jobs(session: Session, rules: Rules = DEFAULT_RULES) -> Sequence[Waiting]:
    """The jobs of all teams that wait for a worker, in the order in which they will be claimed."""
    line = the_line(rules)
    seconds_left = cast(line.c.progress["seconds_left"].astext, Double)
    names = ("id", "name", "state", "team_id", "device", "memory", "place", "held_back", "running_limit", "work")
    query = select(*(line.c[name] for name in names), seconds_left)
    return [Waiting._make(row) for row in session.execute(query.order_by(line.c.place))]


def state_counts(session: Session, team_id: str | None = None) -> dict[JobState, int]:
    """The number of jobs in every state, of a team or of all teams."""
    query = select(Job.state, func.count().label("jobs")).group_by(Job.state)
    if team_id is not None:
        query = query.where(Job.team_id == team_id)
    return dict.fromkeys(JobState, 0) | {row.state: row.jobs for row in session.execute(query)}


def active_jobs(session: Session) -> Sequence[Job]:
    """The jobs of all teams that workers hold, oldest claim first; jobs of lost workers count as waiting."""
    held = (Job.worker.is_not(None), Job.lease_until >= func.statement_timestamp())
    return session.scalars(select(Job).where(*held).order_by(Job.claimed_at, Job.id)).all()


def recent_pass_seconds(session: Session, limit: int) -> Mapping[str, Sequence[float]]:
    """Seconds that workers held each of the last succeeded jobs, the latest first, by the work that they were.

    Args:
        limit: most jobs of one kind of work; as many times :data:`_LOOKED_BACK` of all kinds are looked at.
    """
    succeeded = select(WORK, Job.worker_seconds).where(Job.state == JobState.SUCCEEDED)
    last = succeeded.order_by(Job.finished_at.desc()).limit(limit * _LOOKED_BACK)
    found: defaultdict[str, list[float]] = defaultdict(list)
    for work, seconds in session.execute(last):
        if len(found[work]) < limit:
            found[work].append(seconds)
    return found

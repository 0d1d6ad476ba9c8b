"""The queue seen as a whole: how many jobs stand where, and how long the last ones took."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Double, cast, func, select
from sqlalchemy.orm import Session

from axformer.wire.devices import Device
from store.passes import PASSES
from store.repositories.line import DEFAULT_RULES, Rules, the_line
from store.states import JobState
from store.tables.jobs import Job


class Waiting(NamedTuple):
    """A job that waits for a worker."""

    job_id: str
    name: str
    state: JobState
    team_id: str
    device: Device
    place: int
    """From 1, among those of all teams."""
    held_back: bool
    """Whether its team's limit of running jobs forbids to claim it now."""
    running_limit: int | None
    """That limit; None if there is none."""
    passes: int
    """How many it makes."""
    seconds_left: float | None
    """Of a job that has begun, as it was measured."""


def waiting_jobs(session: Session, rules: Rules = DEFAULT_RULES) -> Sequence[Waiting]:
    """The jobs of all teams that wait for a worker, in the order in which they will be claimed."""
    line = the_line(rules)
    seconds_left = cast(line.c.progress["seconds_left"].astext, Double)
    names = ("id", "name", "state", "team_id", "device", "place", "held_back", "running_limit", "passes")
    query = select(*(line.c[name] for name in names), seconds_left)
    return [Waiting._make(row) for row in session.execute(query.order_by(line.c.place))]


def state_counts(session: Session, team_id: str | None = None) -> dict[JobState, int]:
    """How many jobs are in each state, every state being named: a team's, or those of all teams."""
    query = select(Job.state, func.count().label("jobs")).group_by(Job.state)
    if team_id is not None:
        query = query.where(Job.team_id == team_id)
    return dict.fromkeys(JobState, 0) | {row.state: row.jobs for row in session.execute(query)}


def active_jobs(session: Session) -> Sequence[Job]:
    """All jobs that workers hold, of all teams, oldest claim first; those of lost workers wait again."""
    held = (Job.worker.is_not(None), Job.lease_until >= func.statement_timestamp())
    return session.scalars(select(Job).where(*held).order_by(Job.claimed_at, Job.id)).all()


def recent_pass_seconds(session: Session, limit: int) -> Sequence[float]:
    """How long workers held each of the last succeeded jobs, in seconds a pass, the latest first."""
    query = select(Job.worker_seconds / PASSES.element).where(Job.state == JobState.SUCCEEDED)
    return session.scalars(query.order_by(Job.finished_at.desc()).limit(limit)).all()

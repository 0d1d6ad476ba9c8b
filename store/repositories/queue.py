"""The queue seen as a whole: how many jobs stand where, and how long the last ones took."""

from collections.abc import Sequence

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from store.repositories.passes import CLAIM_ORDER, IS_SEARCH, is_ready
from store.states import ACTIVE, JobState
from store.tables.jobs import Job

_WITHOUT_WORKER = or_(Job.state == JobState.QUEUED, and_(Job.state.in_(ACTIVE), Job.lease_until.is_(None)))
_WAITING = (_WITHOUT_WORKER, is_ready())


def queue_length(session: Session) -> int:
    """How many jobs of all teams wait for a worker."""
    return session.scalars(select(func.count()).select_from(Job).where(*_WAITING)).one()


def state_counts(session: Session, team_id: str | None = None) -> dict[JobState, int]:
    """How many jobs are in each state, every state being named: a team's as they are listed, or all with their passes."""
    query = select(Job.state, func.count().label("jobs")).group_by(Job.state)
    if team_id is not None:
        query = query.where(Job.team_id == team_id, Job.parent_id.is_(None))
    return dict.fromkeys(JobState, 0) | {row.state: row.jobs for row in session.execute(query)}


def active_jobs(session: Session) -> Sequence[Job]:
    """All jobs that workers hold, of all teams, oldest claim first."""
    return session.scalars(select(Job).where(Job.worker.is_not(None)).order_by(Job.started_at)).all()


def recent_run_seconds(session: Session, limit: int) -> Sequence[float]:
    """How long the last succeeded jobs took from claim to end, in seconds, the latest first; passes, but no searches."""
    seconds = func.extract("epoch", Job.finished_at - Job.started_at)
    query = select(seconds).where(Job.state == JobState.SUCCEEDED, ~IS_SEARCH)
    query = query.order_by(Job.finished_at.desc()).limit(limit)
    return [float(value) for value in session.scalars(query)]


def queued_positions(session: Session, team_id: str, limit: int) -> Sequence[tuple[int, Job]]:
    """The team's queued jobs in the order of their claims, each with its place among those of all teams, from 1.

    A search of orders has no place while it waits for its passes, which have.
    """
    place = func.row_number().over(order_by=CLAIM_ORDER).label("place")
    ranked = select(Job.id, place).where(*_WAITING).subquery()
    query = select(ranked.c.place, Job).join(Job, Job.id == ranked.c.id).where(Job.team_id == team_id)
    return [(place, job) for place, job in session.execute(query.order_by(ranked.c.place).limit(limit))]

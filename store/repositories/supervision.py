"""The jobs that a worker's processes hold, for its supervisor."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.states import ACTIVE, JobState
from store.tables.jobs import Job


@dataclass(frozen=True)
class Held:
    """A job that a process holds, by the database's clock."""

    job_id: str
    fence: int
    worker: str
    cancelling_seconds: float | None
    """Seconds since its owner asked to cancel it; None if the owner has not."""
    is_pausing: bool
    """Whether its owner has paused it."""
    overdue_seconds: float
    """Seconds since its lease expired; negative while the lease is valid."""


def held_by(session: Session, workers: Collection[str]) -> Sequence[Held]:
    """The jobs that these workers hold, including expired ones that no other worker has claimed yet."""
    now = func.clock_timestamp()
    query = select(
        Job.id,
        Job.fence,
        Job.worker,
        func.extract("epoch", now - Job.cancel_requested_at),
        Job.state == JobState.PAUSING,
        func.extract("epoch", now - Job.lease_until),
    ).where(Job.worker.in_(workers), Job.state.in_(ACTIVE), Job.lease_until.is_not(None))
    return [
        Held(job_id, fence, str(worker), None if cancelling is None else float(cancelling), is_pausing, float(overdue))
        for job_id, fence, worker, cancelling, is_pausing, overdue in session.execute(query)
    ]

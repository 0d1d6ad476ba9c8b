"""What a worker's supervisor sees of the jobs that its processes hold."""

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
    """How long ago its owner asked to cancel it; None if nobody has."""
    is_pausing: bool
    """Whether its owner wants it paused."""
    overdue_seconds: float
    """How long ago its lease ran out; negative while it lasts."""


def held_by(session: Session, workers: Collection[str]) -> Sequence[Held]:
    """The jobs that these workers hold, also those whose leases have run out and that nobody else has taken yet."""
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

"""How a job gets from one state into another: locked, with its event, and without a lease where no worker holds it on."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.repositories.events import record_event
from store.repositories.turns import end_turn
from store.states import ACTIVE, TERMINAL, JobState, check_transition
from store.tables.jobs import Job


def lock_job(session: Session, job_id: str) -> Job:
    """The job as it is now, locked until the transaction ends.

    The lock leaves the key alone, so that a row that refers to the job is written without waiting for it.

    Raises:
        sqlalchemy.exc.NoResultFound: there is none.
    """
    query = select(Job).where(Job.id == job_id).with_for_update(key_share=True)
    return session.scalars(query.execution_options(populate_existing=True)).one()


def move_job(
    session: Session, job: Job, state: JobState, *, reason: str | None = None, data: dict[str, Any] | None = None
) -> None:
    """Put a locked job into another state and write the event ``job.<state>``; without a worker it has no lease.

    Raises:
        IllegalTransitionError: there is no such move.
    """
    check_transition(job.state, state)
    job.state = state
    job.status_reason = reason
    if state not in ACTIVE:
        job.fence += 1
        end_turn(session, job)
    if state in TERMINAL:
        job.finished_at = func.clock_timestamp()
        job.hub_token = None
    said = {"state": state} | ({"reason": reason} if reason else {}) | (data or {})
    record_event(session, job, f"job.{state}", said)
    session.refresh(job)  # reads back the times that the database has set

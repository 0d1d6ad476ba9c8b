"""State changes of a job: under a lock, with an event, and without a lease if no worker holds the job afterwards."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from axformer.wire.handovers import HandoverState
from store.repositories.events import record_event
from store.repositories.turns import end_turn
from store.states import ACTIVE, TERMINAL, JobState, check_transition
from store.tables.jobs import Job

_NO_RESULT = {
    "code": "no_result",
    "message": "the job ended without a result; ask for it again, with the token, when the job has succeeded",
}


def lock_job(session: Session, job_id: str) -> Job:
    """Lock the job until the transaction ends, and return its current row.

    The lock does not cover the key, so rows that refer to the job can be written without waiting.

    Raises:
        sqlalchemy.exc.NoResultFound: the job does not exist.
    """
    query = select(Job).where(Job.id == job_id).with_for_update(key_share=True)
    return session.scalars(query.execution_options(populate_existing=True)).one()


def move_job(
    session: Session, job: Job, state: JobState, *, reason: str | None = None, data: dict[str, Any] | None = None
) -> None:
    """Move a locked job to another state and write the event ``job.<state>``; without a worker it has no lease.

    Raises:
        IllegalTransitionError: there is no such move.
    """
    check_transition(job.state, state)
    job.state = state
    job.status_reason = reason
    if state not in ACTIVE:
        job.fence += 1
        end_turn(session, job)
    if state is JobState.QUEUED:
        job.queued_at = func.clock_timestamp()
    if state in TERMINAL:
        job.machine = None
        job.finished_at = func.clock_timestamp()
        job.hub_token = None
        _settle_handover(job)
    said = {"state": state} | ({"reason": reason} if reason else {}) | (data or {})
    record_event(session, job, f"job.{state}", said)
    session.refresh(job)  # reads back the times that the database has set


def _settle_handover(job: Job) -> None:
    """A job that has ended has its files put where they should go, or has none."""
    if job.handover is None or job.handover["state"] != HandoverState.WAITING:
        return
    if job.state is JobState.SUCCEEDED:
        job.handover_at = func.clock_timestamp()
    else:
        job.handover = job.handover | {"state": HandoverState.FAILED.value, "error": _NO_RESULT}
        job.handover_token = None

"""State changes of a job: under a lock, with an event, and without a lease if no worker holds the job afterwards."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from axformer.wire.handovers import HandoverState
from store.repositories.events import record_event
from store.repositories.line import end_turn
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


WORKER_LOST = "worker_lost"
"""Error code of a job that has lost its worker too often."""


def fail(session: Session, job: Job, error: Mapping[str, Any]) -> None:
    """End a locked job with an error: ``code``, ``message``, perhaps ``param``, and ``retryable``."""
    job.error = {name: _storable(value) for name, value in error.items()}
    move_job(session, job, JobState.FAILED, reason=job.error["message"], data={"error": job.error})


def _storable(value: Any) -> Any:
    """Replace what PostgreSQL does not store, NUL and lone surrogates; a message may quote a hostile file."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def end_if_spent(session: Session, job: Job) -> bool:
    """End or pause a job without a worker if its owner asked for that, or end it if it has no attempts left."""
    if job.state is JobState.CANCELLING:
        move_job(session, job, JobState.CANCELLED, reason="its worker was lost while it was being cancelled")
        return True
    if job.attempt < job.max_attempts:
        if job.state is not JobState.PAUSING:
            return False
        move_job(session, job, JobState.PAUSED, reason="its worker was lost while it was being paused")
        return True
    message = f"{job.attempt} workers in a row were lost while running this job; the last was {job.worker}"
    fail(session, job, {"code": WORKER_LOST, "message": message, "retryable": True})
    return True

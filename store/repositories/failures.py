"""Jobs that fail, and jobs that end because their worker was lost."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from store.repositories.moves import move_job
from store.states import JobState
from store.tables.jobs import Job

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

"""Jobs as workers see them. A claim gives a lease and a fence number; every later write names the number and is refused
once it is no longer the job's own, so a worker that was thought dead can harm nothing."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import and_, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from axformer.trial import Trial
from store.errors import CancelRequestedError, LeaseLostError
from store.repositories.events import record_event
from store.repositories.jobs import begin_search, cancel_passes, lock_job, move_job
from store.repositories.passes import CLAIM_ORDER, error_of, is_ready, is_search, passes_of
from store.states import ACTIVE, JobState
from store.tables.artifacts import Artifact
from store.tables.jobs import Job
from store.tables.trials import TrialRow

WORKER_LOST = "worker_lost"
"""Code of the error of a job that has outlived all its workers."""


def claim_next(session: Session, worker: str, lease_seconds: float) -> Job | None:
    """Take the next job: queued, or left by a worker whose lease ran out; highest priority first, then the oldest.

    The job is in state ``fetching``, with a new fence number. One that was running before keeps its trace, to be
    resumed. On the way, jobs whose lease ran out while they were being cancelled end as cancelled, those out of attempts
    as failed, and searches of orders after a pass that failed or was cancelled. Null where there is nothing to do.
    """
    query = (
        select(Job)
        .where(_claimable())
        .order_by(*CLAIM_ORDER)
        .limit(1)
        .with_for_update(skip_locked=True, key_share=True)
        .execution_options(populate_existing=True)
    )
    while (job := session.scalars(query).one_or_none()) is not None:
        if not _end_if_spent(session, job) and not _end_with_its_pass(session, job):
            _begin(session, job, worker, lease_seconds)
            return job
    return None


def is_anything_claimable(session: Session) -> bool:
    """Whether there is a job that ``claim_next`` would look at."""
    return session.scalars(select(exists().where(_claimable()))).one()


def heartbeat(session: Session, job_id: str, fence: int, lease_seconds: float) -> JobState:
    """Renew the lease and tell the job's state; ``cancelling`` means: stop and call ``finish_cancelled``.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    held = (Job.id == job_id, Job.fence == fence, Job.state.in_(ACTIVE))
    renewed = update(Job).where(*held).values(lease_until=_lease_end(lease_seconds)).returning(Job.state)
    state = session.execute(renewed, execution_options={"synchronize_session": False}).scalar_one_or_none()
    if state is None:
        raise _lost(job_id, fence)
    return state


def set_state(session: Session, job_id: str, fence: int, state: JobState, reason: str | None = None) -> Job:
    """Go on to the next working state.

    Raises:
        LeaseLostError: the job is no longer the caller's.
        CancelRequestedError: its owner wants it cancelled.
        IllegalTransitionError: that state does not come next.
    """
    job = _lock_uncancelled(session, job_id, fence)
    move_job(session, job, state, reason=reason)
    return job


def add_trials(
    session: Session, job_id: str, fence: int, trials: Sequence[Trial], progress: Mapping[str, Any] | None = None
) -> None:
    """Write trials and how far the pass is. Trials already stored stay as they are, so a batch may come twice.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    job = _lock_held(session, job_id, fence)
    if trials:
        rows = [{"job_id": job_id, **trial.model_dump(mode="json")} for trial in trials]
        session.execute(insert(TrialRow).on_conflict_do_nothing(), rows)
    if progress is not None:
        job.progress = dict(progress)
    session.flush()


def add_event(session: Session, job_id: str, fence: int, type: str, data: Mapping[str, Any] | None = None) -> None:
    """Write an event of the worker's own, for example that a download is done.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    record_event(session, _lock_held(session, job_id, fence), type, data)


def finish_succeeded(
    session: Session, job_id: str, fence: int, report: Mapping[str, Any] | None, artifacts: Sequence[Artifact]
) -> Job:
    """End a packaged job with its report and its files, all at once; a pass of a search has neither.

    Raises:
        LeaseLostError: the job is no longer the caller's.
        CancelRequestedError: its owner wants it cancelled.
    """
    job = _lock_uncancelled(session, job_id, fence)
    job.report = None if report is None else dict(report)
    session.add_all(artifacts)
    move_job(session, job, JobState.SUCCEEDED, data={"artifacts": [artifact.name for artifact in artifacts]})
    return job


def finish_failed(session: Session, job_id: str, fence: int, error: Mapping[str, Any]) -> Job:
    """End a job with an error: ``code``, ``message``, perhaps ``param``, and ``retryable``.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    job = _lock_held(session, job_id, fence)
    _fail(session, job, error)
    return job


def finish_cancelled(session: Session, job_id: str, fence: int) -> Job:
    """End a job that its owner wants cancelled.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    job = _lock_held(session, job_id, fence)
    move_job(session, job, JobState.CANCELLED)
    return job


def release(session: Session, job_id: str, fence: int, reason: str) -> Job:
    """Give a job back to the queue, because this worker is told to stop; the attempt does not count. Its trace stays.

    A job that its owner wants cancelled ends as cancelled.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    job = _lock_held(session, job_id, fence)
    if job.state is JobState.CANCELLING:
        move_job(session, job, JobState.CANCELLED)
    else:
        job.attempt -= 1
        move_job(session, job, JobState.QUEUED, reason=reason)
    return job


def _claimable() -> ColumnElement[bool]:
    # An active job without a lease is one that waits, or has waited, for its passes.
    is_free = or_(Job.lease_until.is_(None), Job.lease_until < func.clock_timestamp())
    return and_(or_(Job.state == JobState.QUEUED, and_(Job.state.in_(ACTIVE), is_free)), is_ready())


def _end_if_spent(session: Session, job: Job) -> bool:
    """End a job whose worker is gone if it was being cancelled or has no attempts left."""
    if job.state is JobState.CANCELLING:
        lost = "its worker was lost while it was being cancelled" if job.worker else None
        move_job(session, job, JobState.CANCELLED, reason=lost)
        return True
    if job.attempt < job.max_attempts:
        return False
    message = f"{job.attempt} workers in a row were lost while running this job; the last was {job.worker}"
    _fail(session, job, {"code": WORKER_LOST, "message": message, "retryable": True})
    return True


def _end_with_its_pass(session: Session, job: Job) -> bool:
    """Deal with a search one of whose passes has failed: cancel the others, and fail when they have all ended."""
    passes = passes_of(session, [job.id]).get(job.id, []) if is_search(job) else []
    failed = next((one for one in passes if one.state is JobState.FAILED), None)
    if failed is None:
        return False
    begin_search(session, job)
    if not cancel_passes(session, job):
        _fail(session, job, error_of(failed))
    return True


def _begin(session: Session, job: Job, worker: str, lease_seconds: float) -> None:
    job.attempt += 1
    job.fence += 1
    job.worker = worker
    job.lease_until = _lease_end(lease_seconds)
    if job.started_at is None or not is_search(job):
        job.started_at = func.clock_timestamp()
    move_job(session, job, JobState.FETCHING, data={"attempt": job.attempt, "worker": worker})
    if job.parent_id is not None:
        _begin_parent(session, job.parent_id)


def _begin_parent(session: Session, parent_id: str) -> None:
    """Let a search run with its first pass. One that is locked, which may be by someone who waits for this pass, is left."""
    query = select(Job).where(Job.id == parent_id).with_for_update(skip_locked=True, key_share=True)
    parent = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if parent is not None:
        begin_search(session, parent)


def _fail(session: Session, job: Job, error: Mapping[str, Any]) -> None:
    job.error = {name: _storable(value) for name, value in error.items()}
    move_job(session, job, JobState.FAILED, reason=job.error["message"], data={"error": job.error})


def _storable(value: Any) -> Any:
    """Text without what PostgreSQL does not store: NUL, and halves of characters. A message may quote a hostile file."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def _lock_held(session: Session, job_id: str, fence: int) -> Job:
    job = lock_job(session, job_id)
    if job.fence != fence or job.state not in ACTIVE:
        raise _lost(job_id, fence)
    return job


def _lock_uncancelled(session: Session, job_id: str, fence: int) -> Job:
    job = _lock_held(session, job_id, fence)
    if job.state is JobState.CANCELLING:
        raise CancelRequestedError(f"job {job_id} is being cancelled; stop and finish it as cancelled")
    return job


def _lease_end(lease_seconds: float) -> ColumnElement[Any]:
    return func.clock_timestamp() + timedelta(seconds=lease_seconds)


def _lost(job_id: str, fence: int) -> LeaseLostError:
    return LeaseLostError(f"fence {fence} of job {job_id} is no longer valid: another worker has it, or it has ended")

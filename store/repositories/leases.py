"""What a worker writes of a job that it has claimed. Every write names the fence number that the claim has given, and is
refused once it is no longer the job's own, so a worker that was thought dead can harm nothing."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import func, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from axformer.plan.trial import Trial
from store.errors import CancelRequestedError, LeaseLostError, PauseRequestedError
from store.repositories.events import record_event
from store.repositories.failures import end_if_spent, fail
from store.repositories.moves import lock_job, move_job
from store.repositories.workers import see_process
from store.states import ACTIVE, JobState
from store.summaries import summary_of
from store.tables.artifacts import Artifact
from store.tables.jobs import Job
from store.tables.trials import FIRST_PASS, TrialRow


def heartbeat(session: Session, job_id: str, fence: int, lease_seconds: float) -> JobState:
    """Renew the lease, note that the worker is alive, and tell the job's state.

    ``cancelling`` means: stop and call ``finish_cancelled``; ``pausing``: stop and call ``release``.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    held = (Job.id == job_id, Job.fence == fence, Job.state.in_(ACTIVE))
    renewed = update(Job).where(*held).values(lease_until=lease_end(lease_seconds)).returning(Job.state, Job.worker)
    found = session.execute(renewed, execution_options={"synchronize_session": False}).one_or_none()
    if found is None:
        raise _lost(job_id, fence)
    see_process(session, found.worker)
    return found.state  # type: ignore[no-any-return] # a row has no types


def set_state(session: Session, job_id: str, fence: int, state: JobState, reason: str | None = None) -> Job:
    """Go on to the next working state.

    Raises:
        LeaseLostError: the job is no longer the caller's.
        CancelRequestedError: its owner wants it cancelled.
        PauseRequestedError: its owner wants it paused.
        IllegalTransitionError: that state does not come next.
    """
    job = lock_wanted(session, job_id, fence)
    move_job(session, job, state, reason=reason)
    return job


def add_trials(
    session: Session,
    job_id: str,
    fence: int,
    trials: Sequence[Trial],
    progress: Mapping[str, Any] | None = None,
    *,
    pass_number: int = FIRST_PASS,
) -> None:
    """Write trials of one pass, which is the one that is shown from then on, and how far the job is.

    Trials already stored stay as they are, so a batch may come twice.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    job = _lock_held(session, job_id, fence)
    if trials:
        rows = [{"job_id": job_id, "pass_number": pass_number, **trial.model_dump(mode="json")} for trial in trials]
        session.execute(insert(TrialRow).on_conflict_do_nothing(), rows)
        job.shown_pass = pass_number
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
    session: Session,
    job_id: str,
    fence: int,
    report: Mapping[str, Any],
    artifacts: Sequence[Artifact],
    *,
    kept_pass: int = FIRST_PASS,
) -> Job:
    """End a packaged job with its report and its files, all at once; shown from then on is the pass that was kept.

    Raises:
        LeaseLostError: the job is no longer the caller's.
        CancelRequestedError: its owner wants it cancelled.
    """
    job = lock_wanted(session, job_id, fence)
    job.summary = summary_of(report)
    job.report = {name: value for name, value in report.items() if name != "path"}
    job.path = report.get("path")
    job.shown_pass = kept_pass
    session.add_all(artifacts)
    move_job(session, job, JobState.SUCCEEDED, data={"artifacts": [artifact.name for artifact in artifacts]})
    return job


def finish_failed(session: Session, job_id: str, fence: int, error: Mapping[str, Any]) -> Job:
    """End a job with an error: ``code``, ``message``, perhaps ``param``, and ``retryable``.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    job = _lock_held(session, job_id, fence)
    fail(session, job, error)
    return job


def finish_cancelled(session: Session, job_id: str, fence: int) -> Job:
    """End a job that its owner wants cancelled.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    job = _lock_held(session, job_id, fence)
    move_job(session, job, JobState.CANCELLED)
    return job


def abandon(session: Session, job_id: str, fence: int, reason: str) -> Job:
    """Say that the worker of a job is no more, so that others need not wait for the end of its lease; the attempt counts.

    A job that its owner wants cancelled ends as cancelled, and one that is to be paused is then paused.

    Raises:
        LeaseLostError: the job is no longer that worker's.
    """
    job = _lock_held(session, job_id, fence)
    if job.state is JobState.CANCELLING:
        move_job(session, job, JobState.CANCELLED, reason=reason)
    else:
        job.lease_until = func.clock_timestamp()
        record_event(session, job, "job.worker_lost", {"worker": job.worker, "reason": reason})
        if job.state is JobState.PAUSING:
            end_if_spent(session, job)
    return job


def release(session: Session, job_id: str, fence: int, reason: str) -> Job:
    """Give a job back to the queue; the attempt does not count, and its trace stays. ``reason`` says why.

    A job that its owner wants cancelled ends as cancelled, and one that is to be paused is then paused.

    Raises:
        LeaseLostError: the job is no longer the caller's.
    """
    job = _lock_held(session, job_id, fence)
    if job.state is JobState.CANCELLING:
        move_job(session, job, JobState.CANCELLED)
    else:
        job.attempt -= 1
        if job.state is JobState.PAUSING:
            move_job(session, job, JobState.PAUSED)
        else:
            move_job(session, job, JobState.QUEUED, reason=reason)
    return job


def lock_wanted(session: Session, job_id: str, fence: int) -> Job:
    """The job, which must be the caller's, locked until the transaction ends.

    Raises:
        LeaseLostError: the job is no longer the caller's.
        CancelRequestedError: its owner wants it cancelled.
        PauseRequestedError: its owner wants it paused.
    """
    job = _lock_held(session, job_id, fence)
    if job.state is JobState.CANCELLING:
        raise CancelRequestedError(f"job {job_id} is being cancelled; stop and finish it as cancelled")
    if job.state is JobState.PAUSING:
        raise PauseRequestedError(f"job {job_id} is being paused; stop and give it back")
    return job


def _lock_held(session: Session, job_id: str, fence: int) -> Job:
    job = lock_job(session, job_id)
    if job.fence != fence or job.state not in ACTIVE:
        raise _lost(job_id, fence)
    return job


def lease_end(lease_seconds: float) -> ColumnElement[Any]:
    """When a lease ends that begins now."""
    return func.clock_timestamp() + timedelta(seconds=lease_seconds)


def _lost(job_id: str, fence: int) -> LeaseLostError:
    return LeaseLostError(f"fence {fence} of job {job_id} is no longer valid: another worker has it, or it has ended")

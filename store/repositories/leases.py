"""What a worker writes about a job that it has claimed.

Every write names the fence number of the claim and is refused once the job has a newer one, so a worker that was taken for
dead can do no harm: each function here raises LeaseLostError where the job is no longer the caller's.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import func, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from axformer.plan.trial import Trial
from axformer.wire.steps import Step
from store.errors import CancelRequestedError, LeaseLostError, PauseRequestedError
from store.repositories.events import record_event
from store.repositories.moves import end_if_spent, fail, lock_job, move_job
from store.repositories.workers import is_any_large_enough, see_process
from store.states import ACTIVE, JobState
from store.summaries import outcome_of, summary_of
from store.tables.files import Artifact
from store.tables.jobs import Job, TrialRow

_NO_TRIALS: Mapping[str, Any] = {"done": 0, "known": 1, "seconds": 0.0, "seconds_left": None}
"""The progress of a job whose first trial is yet to come."""


def heartbeat(session: Session, job_id: str, fence: int, lease_seconds: float) -> JobState:
    """Renew the lease, record that the worker is alive, and return the job's state.

    ``cancelling`` means: stop and call ``finish_cancelled``; ``pausing``: stop and call ``release``.
    """
    held = (Job.id == job_id, Job.fence == fence, Job.state.in_(ACTIVE))
    renewed = update(Job).where(*held).values(lease_until=lease_end(lease_seconds)).returning(Job.state, Job.worker)
    found = session.execute(renewed, execution_options={"synchronize_session": False}).one_or_none()
    if found is None:
        raise _lost(job_id, fence)
    see_process(session, found.worker)
    return found.state  # type: ignore[no-any-return] # a row has no types


def set_state(session: Session, job_id: str, fence: int, state: JobState, reason: str | None = None) -> Job:
    """Move the job to its next working state.

    Raises:
        CancelRequestedError: the owner has cancelled it.
        PauseRequestedError: the owner has paused it.
        IllegalTransitionError: that state does not come next.
    """
    job = lock_wanted(session, job_id, fence)
    move_job(session, job, state, reason=reason)
    return job


def add_trials(
    session: Session, job_id: str, fence: int, trials: Sequence[Trial], progress: Mapping[str, Any] | None = None
) -> None:
    """Write trials and the progress of the job.

    Trials that are already stored stay unchanged, so a batch may arrive twice.
    """
    job = _lock_held(session, job_id, fence)
    if trials:
        rows = [{"job_id": job_id, **trial.model_dump(mode="json")} for trial in trials]
        session.execute(insert(TrialRow).on_conflict_do_nothing(), rows)
    if progress is not None:
        job.progress = dict(progress)
    session.flush()


def set_step(session: Session, job_id: str, fence: int, step: Step) -> None:
    """Write into a job's progress what is done between two trials, or after the last one, when it says how long the job takes.

    Before the first trial, the progress says that none is done. The progress of the next trials replaces the step.
    """
    job = _lock_held(session, job_id, fence)
    progress = {**(job.progress or _NO_TRIALS), "step": step.model_dump(mode="json")}
    if 0 < progress["known"] <= progress["done"]:  # an analysis has no trials, and more steps than the present one
        progress["seconds_left"] = step.seconds_left
    job.progress = progress
    session.flush()


def note_memory(session: Session, job_id: str, fence: int, found: Mapping[str, int]) -> bool:
    """Keep the memory that a look at a job's files found it to need, by kind of device.

    Returns:
        Whether a worker that was seen within a day has as much.
    """
    job = _lock_held(session, job_id, fence)
    if (known := {**job.memory, **found}) != job.memory:
        job.spec = {**job.spec, "memory": known}
        session.flush()
    return is_any_large_enough(session, job)


def add_event(session: Session, job_id: str, fence: int, type: str, data: Mapping[str, Any] | None = None) -> None:
    """Write an event of the worker, for example that a download is done."""
    record_event(session, _lock_held(session, job_id, fence), type, data)


def finish_succeeded(
    session: Session, job_id: str, fence: int, report: Mapping[str, Any], artifacts: Sequence[Artifact]
) -> Job:
    """End a packaged job with its report and its files at once.

    Raises:
        CancelRequestedError: the owner has cancelled it.
    """
    job = lock_wanted(session, job_id, fence)
    job.summary = summary_of(report)
    job.report = {name: value for name, value in report.items() if name != "path"}
    job.path = report.get("path")
    if job.progress is not None:
        told = {name: value for name, value in job.progress.items() if name != "step"}
        job.progress = {**told, "seconds_left": 0.0}
    session.add_all(artifacts)
    said = {"outcome": outcome_of(job.summary), "artifacts": [artifact.name for artifact in artifacts]}
    move_job(session, job, JobState.SUCCEEDED, data=said)
    return job


def finish_failed(session: Session, job_id: str, fence: int, error: Mapping[str, Any]) -> Job:
    """End a job with an error: ``code``, ``message``, perhaps ``param``, and ``retryable``."""
    job = _lock_held(session, job_id, fence)
    fail(session, job, error)
    return job


def finish_cancelled(session: Session, job_id: str, fence: int) -> Job:
    """End a job whose owner has cancelled it."""
    job = _lock_held(session, job_id, fence)
    move_job(session, job, JobState.CANCELLED)
    return job


def abandon(session: Session, job_id: str, fence: int, reason: str) -> Job:
    """Record that the worker of a job is dead, so that others need not wait for the end of its lease; the attempt counts.

    If the owner has asked for it, the job ends as cancelled or is paused instead.
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
    """Give a job back to the queue for a ``reason``; the attempt does not count, and its trace stays.

    If the owner has asked for it, the job ends as cancelled or is paused instead.
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
    """Lock the caller's job until the transaction ends.

    Raises:
        CancelRequestedError: the owner has cancelled it.
        PauseRequestedError: the owner has paused it.
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
    """The end of a lease that begins now."""
    return func.clock_timestamp() + timedelta(seconds=lease_seconds)


def _lost(job_id: str, fence: int) -> LeaseLostError:
    return LeaseLostError(f"fence {fence} of job {job_id} is no longer valid: another worker has it, or it has ended")

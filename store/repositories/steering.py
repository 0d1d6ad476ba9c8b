"""What owners do with existing jobs: cancel, pause, resume, retry and delete them."""

from collections.abc import Sequence

from sqlalchemy import delete, func
from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from axformer.wire.states import JobKind
from store.errors import IllegalTransitionError
from store.repositories.moves import lock_job, move_job
from store.states import TERMINAL, WORKING, JobState
from store.tables.files import Artifact
from store.tables.jobs import Job, TrialRow


def request_cancel(session: Session, job_id: str) -> Job:
    """Cancel a queued job at once, or ask the worker of an active one to stop; a cancelled job stays unchanged.

    Raises:
        IllegalTransitionError: the job has succeeded or failed.
    """
    job = lock_job(session, job_id)
    if job.state in (JobState.CANCELLING, JobState.CANCELLED):
        return job
    job.cancel_requested_at = func.clock_timestamp()
    move_job(session, job, JobState.CANCELLED if job.worker is None else JobState.CANCELLING)
    return job


def cancel_jobs(session: Session, jobs: Sequence[Job]) -> list[tuple[Job, IllegalTransitionError | None]]:
    """Cancel each of these jobs as ``request_cancel`` does; return each job with the reason if it cannot be cancelled."""
    outcomes: list[tuple[Job, IllegalTransitionError | None]] = []
    for job in sorted(jobs, key=lambda job: job.id):  # everyone locks in this order, so there is no deadlock
        try:
            with session.begin_nested():
                request_cancel(session, job.id)
            outcomes.append((job, None))
        except IllegalTransitionError as error:
            outcomes.append((job, error))
        except NoResultFound:  # deleted in the meantime
            continue
    return outcomes


def request_pause(session: Session, job_id: str) -> Job:
    """Pause a queued job at once, or ask the worker of a working one to give it back; a paused job stays unchanged.

    Raises:
        IllegalTransitionError: the job is packaged, is being cancelled, or has ended.
    """
    job = lock_job(session, job_id)
    if job.state in (JobState.PAUSING, JobState.PAUSED):
        return job
    move_job(session, job, JobState.PAUSED if job.worker is None else JobState.PAUSING)
    return job


def resume_job(session: Session, job_id: str) -> Job:
    """Queue a paused job again with its trace; a queued or working job stays unchanged.

    Raises:
        IllegalTransitionError: it is still being paused, or cancelled, or it has ended.
    """
    job = lock_job(session, job_id)
    if job.state in WORKING | {JobState.QUEUED}:
        return job
    if job.state is not JobState.PAUSED:
        raise IllegalTransitionError(f"job {job_id} is {job.state}; only a paused one can be resumed")
    move_job(session, job, JobState.QUEUED, reason="resumed")
    return job


def retry_job(session: Session, job_id: str) -> Job:
    """Queue a failed or cancelled job from scratch: without trace, artifacts, error or attempts; its events stay.

    An export keeps its trace, since it makes no trials itself. The caller removes the content of the artifacts after the
    commit.

    Raises:
        IllegalTransitionError: the job is in another state.
    """
    job = lock_job(session, job_id)
    if job.state not in (JobState.FAILED, JobState.CANCELLED):
        raise IllegalTransitionError(f"job {job_id} is {job.state}; only a failed or cancelled one can be retried")
    if job.kind is not JobKind.EXPORT:
        session.execute(delete(TrialRow).where(TrialRow.job_id == job_id))
        job.progress = None
    session.execute(delete(Artifact).where(Artifact.job_id == job_id))
    job.attempt = 0
    job.worker_seconds = 0.0
    job.waits_since = func.clock_timestamp()
    job.error = job.summary = job.report = job.path = None
    job.cancel_requested_at = job.started_at = job.finished_at = None
    move_job(session, job, JobState.QUEUED, reason="retried")
    return job


def delete_job(session: Session, job_id: str) -> None:
    """Remove a job that has ended, with all its rows.

    The caller removes the artifacts' content after the commit.

    Raises:
        IllegalTransitionError: it has not ended.
    """
    job = lock_job(session, job_id)
    if job.state not in TERMINAL:
        raise IllegalTransitionError(f"job {job_id} is {job.state}; cancel it and wait for its end before deleting it")
    session.delete(job)
    session.flush()

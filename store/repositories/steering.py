"""What owners do with jobs that there are: cancel, pause, resume, retry and delete them, and a search with its passes."""

from collections.abc import Sequence

from sqlalchemy import delete, func
from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from store.errors import IllegalTransitionError
from store.repositories.moves import begin_search, lock_job, move_job
from store.repositories.outbox import add_message
from store.repositories.passes import add_passes, is_search, lock_passes, remove_passes
from store.states import ACTIVE, TERMINAL, WORKING, JobState
from store.tables.artifacts import Artifact
from store.tables.jobs import Job
from store.tables.trials import TrialRow


def request_cancel(session: Session, job_id: str) -> Job:
    """Cancel a queued job at once, ask the worker of an active one to stop; a cancelled one stays as it is.

    The passes of a search are cancelled with it; it ends when they have.

    Raises:
        IllegalTransitionError: the job has succeeded or failed.
    """
    job = lock_job(session, job_id)
    if job.state in (JobState.CANCELLING, JobState.CANCELLED):
        return job
    job.cancel_requested_at = func.clock_timestamp()
    is_held = cancel_passes(session, job) or job.worker is not None
    move_job(session, job, JobState.CANCELLING if is_held else JobState.CANCELLED)
    return job


def cancel_passes(session: Session, job: Job) -> bool:
    """Cancel the passes of a locked job that have not ended. Whether workers must stop before all have."""
    if not is_search(job):
        return False
    unfinished = [one for one in lock_passes(session, job) if one.state not in TERMINAL]
    stopping = [one for one in unfinished if request_cancel(session, one.id).state is JobState.CANCELLING]
    if stopping:
        begin_search(session, job)
    return bool(stopping)


def cancel_jobs(session: Session, jobs: Sequence[Job]) -> list[tuple[Job, IllegalTransitionError | None]]:
    """Cancel each of these jobs as ``request_cancel`` does; tell of each as it is now why it cannot be cancelled, if so."""
    outcomes: list[tuple[Job, IllegalTransitionError | None]] = []
    for job in sorted(jobs, key=lambda one: one.id):  # everyone locks in this order, so that none waits for the other
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
    """Pause a queued job at once, ask the worker of a working one to give it back; a paused one stays as it is.

    The passes of a search are paused with it; it is paused when they are.

    Raises:
        IllegalTransitionError: the job is packaged, is being cancelled, or has ended.
    """
    job = lock_job(session, job_id)
    if job.state in (JobState.PAUSING, JobState.PAUSED):
        return job
    is_held = _pause_passes(session, job) or job.worker is not None
    move_job(session, job, JobState.PAUSING if is_held else JobState.PAUSED)
    return job


def _pause_passes(session: Session, job: Job) -> bool:
    """Pause the passes of a locked job that have not ended. Whether workers must stop before all are paused.

    A pass that is packaged ends within moments, and its parent waits for that.
    """
    if not is_search(job):
        return False
    unfinished = [one for one in lock_passes(session, job) if one.state not in TERMINAL]
    for one in unfinished:
        if one.state is not JobState.PACKAGING:
            request_pause(session, one.id)
    is_held = any(one.state in ACTIVE for one in unfinished)
    if is_held:
        begin_search(session, job)
    return is_held


def resume_job(session: Session, job_id: str) -> Job:
    """Queue a paused job again with its trace, and its passes with it. One that is queued or worked on stays as it is.

    Raises:
        IllegalTransitionError: it is still being paused, or cancelled, or it has ended.
    """
    job = lock_job(session, job_id)
    if job.state in WORKING | {JobState.QUEUED}:
        return job
    if job.state is not JobState.PAUSED:
        raise IllegalTransitionError(f"job {job_id} is {job.state}; only a paused one can be resumed")
    for one in lock_passes(session, job) if is_search(job) else []:
        if one.state is JobState.PAUSED:
            move_job(session, one, JobState.QUEUED, reason="resumed")
    move_job(session, job, JobState.QUEUED, reason="resumed")
    add_message(session, job_id)
    return job


def retry_job(session: Session, job_id: str) -> Job:
    """Queue a failed or cancelled job afresh: no trace, artifacts, error or attempts, and new passes; its events stay.

    An export keeps the trace that it was made with, since it tries nothing itself. The caller removes the artifacts'
    content after the commit.

    Raises:
        IllegalTransitionError: the job is in another state, or a worker has one of its passes still.
    """
    job = lock_job(session, job_id)
    if job.state not in (JobState.FAILED, JobState.CANCELLED):
        raise IllegalTransitionError(f"job {job_id} is {job.state}; only a failed or cancelled one can be retried")
    if is_search(job):
        remove_passes(session, job)
    if job.exported_from is None:
        session.execute(delete(TrialRow).where(TrialRow.job_id == job_id))
        job.progress = None
    session.execute(delete(Artifact).where(Artifact.job_id == job_id))
    job.attempt = 0
    job.worker_seconds = 0.0
    job.waits_since = func.clock_timestamp()
    job.error = job.summary = job.report = job.path = None
    job.cancel_requested_at = job.started_at = job.finished_at = None
    move_job(session, job, JobState.QUEUED, reason="retried")
    if is_search(job):
        add_passes(session, job)
    add_message(session, job_id)
    return job


def delete_job(session: Session, job_id: str) -> None:
    """Remove a job that has ended, its passes, and every row of them.

    The caller removes the artifacts' content after the commit.

    Raises:
        IllegalTransitionError: it has not ended, or a worker has one of its passes still.
    """
    job = lock_job(session, job_id)
    if job.state not in TERMINAL:
        raise IllegalTransitionError(f"job {job_id} is {job.state}; cancel it and wait for its end before deleting it")
    remove_passes(session, job)
    session.delete(job)
    session.flush()

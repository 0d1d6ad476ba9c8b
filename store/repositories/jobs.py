"""Jobs as their owners see them: made, found, listed, cancelled, paused, retried, deleted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import delete, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session, undefer

from store.devices import Device
from store.errors import IllegalTransitionError
from store.ids import JOB_PREFIX, new_id
from store.page import Page, page_of
from store.repositories.events import record_event
from store.repositories.outbox import add_message
from store.repositories.passes import add_passes, is_search, lock_passes, remove_passes
from store.repositories.turns import end_turn
from store.settings import MAX_ATTEMPTS
from store.states import ACTIVE, TERMINAL, WORKING, JobState, check_transition
from store.tables.artifacts import Artifact
from store.tables.jobs import Job
from store.tables.trials import TrialRow


@dataclass(frozen=True)
class NewJob:
    """What a new job is made of; see ``store.tables.jobs.Job`` for the fields."""

    team_id: str
    name: str
    checkpoint: dict[str, Any]
    validation: dict[str, Any]
    preset: str
    config: dict[str, Any]
    test: dict[str, Any] | None = None
    train: dict[str, Any] | None = None
    finetune: dict[str, Any] | None = None
    priority: int = 0
    device: Device = Device.ANY
    forms: list[str] = field(default_factory=lambda: ["compact"])
    labels: dict[str, str] = field(default_factory=dict)
    max_attempts: int = MAX_ATTEMPTS
    idempotency_key: str | None = None
    body_sha256: bytes | None = None
    webhook: dict[str, Any] | None = None


@dataclass(frozen=True)
class Created:
    """A job, and whether it is new or the one made before with the same idempotency key."""

    job: Job
    is_new: bool


@dataclass(frozen=True)
class Standing:
    """What a watcher asks for again and again."""

    state: JobState
    event_count: int


def create_job(session: Session, new: NewJob) -> Created:
    """Make a queued job with its first event, the message that wakes a worker, and its passes where it searches orders.

    Where the team has used the idempotency key before, also in a transaction that is just committing, nothing is made
    and that job is returned; the caller compares ``body_sha256``.
    """
    values = vars(new) | {
        "id": new_id(JOB_PREFIX),
        "state": JobState.QUEUED,
        "attempt": 0,
        "fence": 0,
        "event_count": 0,
    }
    made = insert(Job).values(values).on_conflict_do_nothing(index_elements=["team_id", "idempotency_key"])
    same_key = select(Job).where(Job.team_id == new.team_id, Job.idempotency_key == new.idempotency_key)
    same_key = same_key.options(undefer(Job.first_answer))  # at once: the job may be deleted before it is asked for
    while (job := session.scalars(made.returning(Job)).one_or_none()) is None:
        known = session.scalars(same_key).one_or_none()
        if known is not None:  # else it was deleted between the two statements, and the key is free again
            return Created(known, is_new=False)
    record_event(session, job, "job.created", {"state": job.state})
    add_message(session, job.id)
    if is_search(job):
        add_passes(session, job)
    return Created(job, is_new=True)


def find_job(session: Session, job_id: str, team_id: str) -> Job | None:
    """The team's job with this id; null also where it is another team's."""
    return session.scalars(select(Job).where(Job.id == job_id, Job.team_id == team_id)).one_or_none()


def find_standings(session: Session, job_ids: Sequence[str]) -> dict[str, Standing]:
    """Where those of these jobs that there are stand, without all that they hold."""
    query = select(Job.id, Job.state, Job.event_count).where(Job.id.in_(job_ids))
    return {found.id: Standing(found.state, found.event_count) for found in session.execute(query)}


def lock_job(session: Session, job_id: str) -> Job:
    """The job as it is now, locked until the transaction ends.

    The lock leaves the key alone, so that a row that refers to the job, as its passes do, is written without waiting for it.

    Raises:
        sqlalchemy.exc.NoResultFound: there is none.
    """
    query = select(Job).where(Job.id == job_id).with_for_update(key_share=True)
    return session.scalars(query.execution_options(populate_existing=True)).one()


def list_jobs(
    session: Session,
    team_id: str,
    *,
    limit: int,
    after: Job | None = None,
    states: Sequence[JobState] = (),
    labels: dict[str, str] | None = None,
    name: str | None = None,
    ids: Sequence[str] | None = None,
) -> Page[Job]:
    """The team's jobs, newest first, from the one after ``after`` on, without passes.

    Only those in one of ``states`` (if any are given), with all of ``labels``, with exactly this ``name``, and among
    these ``ids``.
    """
    query = select(Job).where(Job.team_id == team_id, Job.parent_id.is_(None))
    if after is not None:
        query = query.where(tuple_(Job.created_at, Job.id) < (after.created_at, after.id))
    if states:
        query = query.where(Job.state.in_(states))
    if labels:
        query = query.where(Job.labels.contains(labels))
    if name is not None:
        query = query.where(Job.name == name)
    if ids is not None:
        query = query.where(Job.id.in_(ids))
    query = query.order_by(Job.created_at.desc(), Job.id.desc()).limit(limit + 1)
    return page_of(session.scalars(query).all(), limit)


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


def begin_search(session: Session, job: Job) -> None:
    """Say of a locked queued search that workers have begun with its passes."""
    if job.state is JobState.QUEUED:
        if job.started_at is None:
            job.started_at = func.clock_timestamp()
        move_job(session, job, JobState.RUNNING, reason="its passes run as jobs of their own")


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

    The caller removes the artifacts' content after the commit.

    Raises:
        IllegalTransitionError: the job is in another state, or a worker has one of its passes still.
    """
    job = lock_job(session, job_id)
    if job.state not in (JobState.FAILED, JobState.CANCELLED):
        raise IllegalTransitionError(f"job {job_id} is {job.state}; only a failed or cancelled one can be retried")
    if is_search(job):
        remove_passes(session, job)
    session.execute(delete(TrialRow).where(TrialRow.job_id == job_id))
    session.execute(delete(Artifact).where(Artifact.job_id == job_id))
    job.attempt = 0
    job.worker_seconds = 0.0
    job.waits_since = func.clock_timestamp()
    job.error = job.report = job.progress = None
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
    said = {"state": state} | ({"reason": reason} if reason else {}) | (data or {})
    record_event(session, job, f"job.{state}", said)
    session.refresh(job)  # reads back the times that the database has set

"""What teams may do with existing jobs: cancel, pause, resume, retry and delete them. Changes are recorded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from api.errors import WrongStateError
from api.services.jobs import find, no_job
from api.services.quotas import check_queued
from axformer.wire.bulk import BULK_MOST, BulkCancel, BulkErrorRead, BulkItemRead, BulkRead
from store.errors import IllegalTransitionError
from store.repositories import steering as repository
from store.repositories.audit import Actor, note
from store.repositories.jobs import list_jobs
from store.states import TERMINAL, JobState
from store.storage.storage import Storage, job_folder
from store.tables.jobs import Job

_NOT_FOUND = "your team has no job '{}' that fits"
_CANCELLABLE = [state for state in JobState if state not in TERMINAL | {JobState.CANCELLING}]


def cancel(session: Session, actor: Actor, job_id: str) -> Job:
    """Cancel a queued job at once, or ask the worker of a running one to stop. Repeating this changes nothing.

    Raises:
        NoSuchObjectError: the team has no such job.
        WrongStateError: it has ended otherwise.
    """
    return _changed(session, actor, job_id, "job.cancel", repository.request_cancel)


def cancel_many(session: Session, actor: Actor, body: BulkCancel) -> BulkRead:
    """Cancel the jobs that a request names or describes, each independently of the others.

    Labels select only jobs that can be cancelled; named jobs are reported whatever their state.
    """
    wanted = body.states or ([] if body.ids else _CANCELLABLE)
    ids = [job_id for job_id in body.ids if job_id.isprintable()] if body.ids else None
    page = list_jobs(session, actor.team_id, limit=BULK_MOST, states=wanted, labels=dict(body.labels), ids=ids)
    outcomes = repository.cancel_jobs(session, page.items)
    note(session, actor, "job.cancel", *(job.id for job, error in outcomes if error is None))
    items = [
        _outcome(job.id, job.state, "wrong_state", None if error is None else f"{job.id}: {error}")
        for job, error in outcomes
    ]
    unknown = set(body.ids or ()) - {job.id for job, _ in outcomes}
    items += [_outcome(job_id, None, "job_not_found", _NOT_FOUND.format(job_id)) for job_id in sorted(unknown)]
    return BulkRead(data=items, has_more=page.has_more)


def _outcome(job_id: str, state: JobState | None, code: str, detail: str | None) -> BulkItemRead:
    return BulkItemRead(
        id=job_id, state=state, error=None if detail is None else BulkErrorRead(code=code, detail=detail)
    )


def pause(session: Session, actor: Actor, job_id: str) -> Job:
    """Pause a queued job at once, or ask the worker of a running one to give it back. Repeating this changes nothing.

    Raises:
        NoSuchObjectError: the team has no such job.
        WrongStateError: it is about to end or has ended.
    """
    return _changed(session, actor, job_id, "job.pause", repository.request_pause)


def resume(session: Session, actor: Actor, job_id: str) -> Job:
    """Queue a paused job again with its trace; a queued or running job stays unchanged.

    Raises:
        NoSuchObjectError: the team has no such job.
        WrongStateError: it is not paused yet, or has ended.
    """
    return _changed(session, actor, job_id, "job.resume", repository.resume_job)


def retry(session: Session, storage: Storage, actor: Actor, job_id: str) -> Job:
    """Queue a failed or cancelled job from scratch.

    Raises:
        NoSuchObjectError: the team has no such job.
        WrongStateError: it has not ended, or has succeeded; or there is no room for its results.
        LimitReachedError: the team has as many queued jobs as it may have.
    """
    with _as_answers(find(session, actor.team_id, job_id)) as job:
        again = repository.retry_job(session, job.id)
    check_queued(session, actor.team_id)
    # Before the commit: no row names these files, and afterwards a worker may already write new ones.
    storage.delete(job_folder(job_id))
    note(session, actor, "job.retry", job_id)
    return again


def delete(session: Session, actor: Actor, job_id: str) -> None:
    """Remove a job that has ended; the caller removes its files after the commit.

    Raises:
        NoSuchObjectError: the team has no such job.
        WrongStateError: it has not ended.
    """
    with _as_answers(find(session, actor.team_id, job_id)) as job:
        repository.delete_job(session, job.id)
    note(session, actor, "job.delete", job_id)


def _changed(session: Session, actor: Actor, job_id: str, action: str, change: Callable[[Session, str], Job]) -> Job:
    with _as_answers(find(session, actor.team_id, job_id)) as job:
        changed = change(session, job.id)
    note(session, actor, action, job_id)
    return changed


@contextmanager
def _as_answers(job: Job) -> Iterator[Job]:
    try:
        yield job
    except IllegalTransitionError as error:
        raise WrongStateError(f"{job.id}: {error}", code="wrong_state") from None
    except NoResultFound:  # deleted between two statements
        raise no_job(job.id) from None

"""What teams may do with jobs: post, find, list, cancel, retry and delete them."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from api.errors import ConflictError, FieldError, InvalidInputError, NotFoundError
from api.paging import parse_job_cursor, unknown_cursor
from api.references import check_reference, refused
from api.schemas.jobs import JobCreate
from axformer.config import make_config
from axformer.errors import ConfigError
from store.errors import IllegalTransitionError
from store.page import Page
from store.repositories import jobs as repository
from store.repositories.jobs import Created, NewJob
from store.repositories.passes import passes_of
from store.repositories.uploads import find_upload
from store.settings import Settings
from store.states import JobState
from store.storage import Storage, job_folder
from store.tables.jobs import Job


def submit(session: Session, settings: Settings, team_id: str, body: JobCreate, key: str | None) -> Created:
    """Queue a job, or find the one that the same request with the same idempotency key has made.

    Raises:
        InvalidInputError: a reference or a knob cannot be used, or the key came with another body before.
    """
    uploads = _check_references(settings, body)
    body_sha256 = hashlib.sha256(body.model_dump_json().encode()).digest()
    new = NewJob(
        team_id=team_id,
        name=body.name,
        checkpoint=body.checkpoint.model_dump(),
        validation=body.validation.model_dump(exclude_none=True),
        test=body.test.model_dump(exclude_none=True) if body.test else None,
        preset=body.preset.value,
        config=_knobs(body),
        priority=body.priority,
        labels=dict(body.labels),
        max_attempts=settings.max_attempts,
        idempotency_key=key,
        body_sha256=body_sha256 if key is not None else None,
    )
    created = repository.create_job(session, new)
    if created.is_new:
        # Only now: a request that is sent again is answered as before, also when its uploads are gone by then.
        _check_uploads(session, team_id, uploads)
    elif created.job.body_sha256 != body_sha256:
        detail = f"Idempotency-Key '{key}' came before with another body, for {created.job.id}; take a new key"
        errors = [FieldError(detail, parameter="Idempotency-Key")]
        raise InvalidInputError(detail, code="idempotency_key_reused", errors=errors)
    return created


def find(session: Session, team_id: str, job_id: str) -> Job:
    """The team's job with this id.

    Raises:
        NotFoundError: the team has none.
    """
    job = repository.find_job(session, job_id, team_id) if job_id.isprintable() else None
    if job is None:
        raise _no_job(job_id)
    return job


def passes(session: Session, jobs: Sequence[Job]) -> dict[str, list[Job]]:
    """The passes of those of these jobs that search orders."""
    return passes_of(session, [job.id for job in jobs])


def list_jobs(
    session: Session,
    team_id: str,
    *,
    limit: int,
    after: str | None,
    states: Sequence[JobState],
    labels: Sequence[str],
) -> Page[Job]:
    """The team's jobs without passes, newest first, in one of the states and with all labels (written ``key:value``).

    Raises:
        InvalidInputError: ``after`` names no job, or a label has no colon.
    """
    last = _last_seen(session, team_id, after) if after is not None else None
    wanted = dict(_label(text) for text in labels)
    return repository.list_jobs(session, team_id, limit=limit, after=last, states=states, labels=wanted)


def cancel(session: Session, team_id: str, job_id: str) -> Job:
    """Cancel a queued job at once and ask the worker of a running one to stop. Doing so twice changes nothing.

    Raises:
        NotFoundError: the team has no such job.
        ConflictError: it has ended otherwise, or is a pass.
    """
    with _as_answers(_find_whole(session, team_id, job_id)) as job:
        return repository.request_cancel(session, job.id)


def retry(session: Session, storage: Storage, team_id: str, job_id: str) -> Job:
    """Queue a failed or cancelled job afresh.

    Raises:
        NotFoundError: the team has no such job.
        ConflictError: it has not ended, or has succeeded, or is a pass.
    """
    with _as_answers(_find_whole(session, team_id, job_id)) as job:
        again = repository.retry_job(session, job.id)
        # Before the commit: no row names these files, and afterwards a worker may already write new ones.
        storage.delete(job_folder(job.id))
        return again


def delete(session: Session, team_id: str, job_id: str) -> None:
    """Remove a job that has ended; the caller removes its files after the commit.

    Raises:
        NotFoundError: the team has no such job.
        ConflictError: it has not ended, or is a pass.
    """
    with _as_answers(_find_whole(session, team_id, job_id)) as job:
        repository.delete_job(session, job.id)


def _find_whole(session: Session, team_id: str, job_id: str) -> Job:
    """The team's job, which is no pass of another."""
    job = find(session, team_id, job_id)
    if job.parent_id is not None:
        raise ConflictError(f"{job.id} is a pass of {job.parent_id}; do this with that job", code="part_of_job")
    return job


@contextmanager
def _as_answers(job: Job) -> Iterator[Job]:
    try:
        yield job
    except IllegalTransitionError as error:
        raise ConflictError(f"{job.id}: {error}", code="wrong_state") from None
    except NoResultFound:  # deleted between two statements
        raise _no_job(job.id) from None


def _no_job(job_id: str) -> NotFoundError:
    return NotFoundError(f"your team has no job '{job_id}'; GET /v1/jobs lists those there are", code="job_not_found")


def _knobs(body: JobCreate) -> dict[str, Any]:
    try:
        return make_config(body.preset, body.config).model_dump(mode="json")
    except ConfigError as error:
        detail = str(error)
        raise InvalidInputError(detail, code=error.code, errors=[FieldError(detail, pointer="#/config")]) from None


def _check_references(settings: Settings, body: JobCreate) -> list[tuple[str, str]]:
    """Refuse references that cannot work; the ids of uploads among them, each with its place in the body."""
    references = [("#/checkpoint/uri", body.checkpoint.uri), ("#/validation/uri", body.validation.uri)]
    if body.test:
        references.append(("#/test/uri", body.test.uri))
    uploads = []
    for pointer, uri in references:
        is_checkpoint = pointer.startswith("#/checkpoint")
        upload_id = check_reference(uri, pointer, is_checkpoint=is_checkpoint, settings=settings)
        if upload_id is not None:
            uploads.append((pointer, upload_id))
    return uploads


def _check_uploads(session: Session, team_id: str, uploads: Sequence[tuple[str, str]]) -> None:
    for pointer, upload_id in uploads:
        if find_upload(session, upload_id, team_id) is None:
            raise refused(f"upload:{upload_id}", pointer, "is no upload of your team; POST /v1/uploads makes one")


def _last_seen(session: Session, team_id: str, after: str) -> Job:
    job_id, created_at = parse_job_cursor(after)
    if created_at is not None:
        return Job(id=job_id, created_at=created_at)
    job = repository.find_job(session, job_id, team_id)
    if job is None:
        raise unknown_cursor(after)
    return job


def _label(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not text.isprintable():
        detail = f"label='{text}' is not of the form key:value"
        raise InvalidInputError(detail, errors=[FieldError(detail, parameter="label")])
    return key, value

"""What teams may do with jobs: post, find, list, cancel, pause, retry and delete them."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from api.errors import ConflictError, FieldError, InvalidInputError, NotFoundError
from api.paging import parse_job_cursor, unknown_cursor
from api.references import check_reference, refused
from api.schemas.bulk import BULK_MOST, BulkCancel
from api.schemas.jobs import JobCreate
from api.services.quotas import check_queued
from api.services.webhooks import check_secret, check_webhook
from axformer.config import make_config
from axformer.errors import ConfigError
from axformer.finetune_settings import FinetuneSettings
from axformer.forms.kinds import COMPACT, KINDS
from store.errors import IllegalTransitionError
from store.page import Page
from store.repositories import jobs as repository
from store.repositories.jobs import Created, NewJob
from store.repositories.passes import is_search, passes_of
from store.repositories.uploads import hold_upload
from store.settings import Settings
from store.states import TERMINAL, JobState
from store.storage import Storage, job_folder
from store.tables.jobs import Job


@dataclass(frozen=True)
class BulkOutcome:
    """What became of each job of a bulk request."""

    jobs: Sequence[tuple[Job, IllegalTransitionError | None]]
    """Each as it is now, and why it was left so, if it was."""
    unknown: Sequence[str]
    """Ids that were named and are no jobs of the team, or do not fit the rest of the description."""
    has_more: bool
    """Whether more fit the description than are taken at a time."""


_CANCELLABLE = [state for state in JobState if state not in TERMINAL | {JobState.CANCELLING}]


def submit(session: Session, settings: Settings, team_id: str, body: JobCreate, key: str | None) -> Created:
    """Queue a job, or find the one that the same request with the same idempotency key has made.

    Raises:
        InvalidInputError: a reference, a knob or the webhook cannot be used, or the key came with another body before.
        TooManyRequestsError: the team has as many queued jobs as it may have.
        ConflictError: the team stores as many bytes as it may store.
    """
    uploads = _check_references(settings, body)
    if body.webhook is not None:
        check_webhook(settings, body.webhook)
    # Without defaults, so that a field that is added later does not change what was sent before.
    body_sha256 = hashlib.sha256(body.model_dump_json(exclude_defaults=True).encode()).digest()
    new = NewJob(
        team_id=team_id,
        name=body.name,
        checkpoint=body.checkpoint.model_dump(),
        validation=body.validation.model_dump(exclude_none=True),
        test=body.test.model_dump(exclude_none=True) if body.test else None,
        train=body.train.model_dump(exclude_none=True) if body.train else None,
        finetune=_finetune(body),
        preset=body.preset.value,
        config=_knobs(body),
        priority=body.priority,
        device=body.device,
        forms=[name for name in KINDS if name == COMPACT or name in body.forms],
        labels=dict(body.labels),
        max_attempts=settings.max_attempts,
        idempotency_key=key,
        body_sha256=body_sha256 if key is not None else None,
        webhook=body.webhook.model_dump(mode="json") if body.webhook else None,
    )
    created = repository.create_job(session, new)
    if created.is_new:
        # Only now: a request that is sent again is answered as before, also when its uploads are gone by then.
        _check_uploads(session, team_id, uploads)
        check_queued(session, team_id)
        if body.webhook is not None:
            check_secret(session, team_id)
    elif created.job.body_sha256 != body_sha256:
        detail = f"Idempotency-Key '{key}' came before with another body, for {created.job.id}; take a new key"
        errors = [FieldError(detail, parameter="Idempotency-Key")]
        raise InvalidInputError(detail, code="idempotency_key_reused", errors=errors)
    return created


def remember_answer(job: Job, text: str) -> None:
    """Keep the answer to a request with an idempotency key for when it comes again."""
    if job.idempotency_key is not None:
        job.first_answer = text


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
    parents = [job.id for job in jobs if is_search(job)]
    return passes_of(session, parents) if parents else {}


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


def cancel_many(session: Session, team_id: str, body: BulkCancel) -> BulkOutcome:
    """Cancel the jobs that a request names or describes, each by itself; what becomes of one changes nothing for others.

    Labels alone describe jobs that could be cancelled; those that are named are answered for whatever their state.
    """
    wanted = body.states or ([] if body.ids else _CANCELLABLE)
    ids = [job_id for job_id in body.ids if job_id.isprintable()] if body.ids else None
    page = repository.list_jobs(session, team_id, limit=BULK_MOST, states=wanted, labels=dict(body.labels), ids=ids)
    outcomes = repository.cancel_jobs(session, page.items)
    unknown = set(body.ids or ()) - {job.id for job, _ in outcomes}
    return BulkOutcome(outcomes, sorted(unknown), page.has_more)


def pause(session: Session, team_id: str, job_id: str) -> Job:
    """Take a queued job out of the queue, and ask the worker of a running one to give it back. Twice changes nothing.

    Raises:
        NotFoundError: the team has no such job.
        ConflictError: it is about to end or has ended, or is a pass.
    """
    with _as_answers(_find_whole(session, team_id, job_id)) as job:
        return repository.request_pause(session, job.id)


def resume(session: Session, team_id: str, job_id: str) -> Job:
    """Queue a paused job again with its trace. One that is queued or worked on stays as it is.

    Raises:
        NotFoundError: the team has no such job.
        ConflictError: it is not paused yet, or has ended, or is a pass.
    """
    with _as_answers(_find_whole(session, team_id, job_id)) as job:
        return repository.resume_job(session, job.id)


def retry(session: Session, storage: Storage, team_id: str, job_id: str) -> Job:
    """Queue a failed or cancelled job afresh.

    Raises:
        NotFoundError: the team has no such job.
        ConflictError: it has not ended, or has succeeded, or is a pass; or there is no room for its results.
        TooManyRequestsError: the team has as many queued jobs as it may have.
    """
    with _as_answers(_find_whole(session, team_id, job_id)) as job:
        again = repository.retry_job(session, job.id)
        check_queued(session, team_id)
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


def _finetune(body: JobCreate) -> dict[str, Any] | None:
    if body.train is not None:
        return (body.finetune or FinetuneSettings()).model_dump(mode="json")
    if body.finetune is None:
        return None
    detail = "says how to train, and train on what; give train too, or leave it out"
    raise InvalidInputError(f"finetune {detail}", errors=[FieldError(detail, pointer="#/finetune")])


def _check_references(settings: Settings, body: JobCreate) -> list[tuple[str, str]]:
    """Refuse references that cannot work; the ids of uploads among them, each with its place in the body."""
    references = [("#/checkpoint/uri", body.checkpoint.uri), ("#/validation/uri", body.validation.uri)]
    if body.test:
        references.append(("#/test/uri", body.test.uri))
    if body.train:
        references.append(("#/train/uri", body.train.uri))
    uploads = []
    for pointer, uri in references:
        is_checkpoint = pointer.startswith("#/checkpoint")
        upload_id = check_reference(uri, pointer, is_checkpoint=is_checkpoint, settings=settings)
        if upload_id is not None:
            uploads.append((pointer, upload_id))
    return uploads


def _check_uploads(session: Session, team_id: str, uploads: Sequence[tuple[str, str]]) -> None:
    for pointer, upload_id in uploads:
        if hold_upload(session, upload_id, team_id) is None:
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

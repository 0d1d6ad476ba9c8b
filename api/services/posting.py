"""Posting a job: check its references, and create only one job for a repeated request."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from sqlalchemy.orm import Session

from api.errors import FieldError, InvalidInputError, Refusals
from api.services.handovers import locked_target
from api.services.quotas import check_queued
from api.services.webhooks import check_secret, check_webhook
from axformer.data.formats import data_suffix, why_not_data
from axformer.errors import ConfigError
from axformer.wire.analyses import AnalysisCreate, AnalysisRun
from axformer.wire.jobs import JobCreate
from axformer.wire.run import Run, SettledRun
from axformer.wire.states import JobKind
from store.errors import ReferenceFormError
from store.references import HUB_PREFIX, UPLOAD_PREFIX, Scheme, parse_reference, shown
from store.repositories.files import hold_upload
from store.repositories.handovers import new_handover
from store.repositories.jobs import Created, NewJob, create_job
from store.settings import Settings
from store.signing import open_vault
from store.storage.archives import ARCHIVE_SUFFIXES, is_archive
from store.tables.jobs import Job


def submit(session: Session, settings: Settings, team_id: str, body: JobCreate, key: str | None) -> Created:
    """Queue a job, or find the one that a request with the same idempotency key created.

    Raises:
        InvalidInputError: a reference, a knob or the webhook cannot be used, or the key came with another body before.
        LimitReachedError: the team has as many queued jobs as it may have.
        WrongStateError: the team stores as many bytes as it may store.
    """
    # Without defaults, so that a field added later does not change the hash of an earlier body.
    body_sha256 = hashlib.sha256(body.model_dump_json(exclude_defaults=True).encode()).digest()
    return queue_once(session, new_job(settings, team_id, body), uploads_of(body), key, body_sha256)


def queue_once(
    session: Session, new: NewJob, uploads: Sequence[tuple[str, str]], key: str | None, body_sha256: bytes
) -> Created:
    """Queue a job, or find the one that a request with the same idempotency key created.

    Args:
        new: the job, without key and hash.
        uploads: the ids of the uploads that it names, each with its place in the body.

    Raises:
        InvalidInputError: the team has no such upload or no secret for the webhook, or the key came with another body before.
        LimitReachedError: the team has as many queued jobs as it may have.
        WrongStateError: the team stores as many bytes as it may store.
    """
    created = create_job(
        session, replace(new, idempotency_key=key, body_sha256=body_sha256 if key is not None else None)
    )
    if created.is_new:
        # Checked last: a repeated request gets its first answer even if its uploads are gone by then.
        for pointer, upload_id in uploads:
            check_upload(session, new.team_id, pointer, upload_id)
        check_queued(session, new.team_id)
        if new.webhook is not None:
            check_secret(session, new.team_id)
    elif created.job.body_sha256 != body_sha256:
        raise reused_key(key, created.job.id)
    return created


def new_job(settings: Settings, team_id: str, body: JobCreate) -> NewJob:
    """The job that a body describes, without checking the team's uploads and limits.

    Raises:
        InvalidInputError: a reference, a knob or the webhook cannot be used.
    """
    refusals = Refusals()
    for pointer, uri in references_of(body):
        with refusals.gathered():
            check_reference(uri, pointer, is_checkpoint=pointer in CHECKPOINTS, settings=settings)
    with refusals.gathered():
        if body.webhook is not None:
            check_webhook(settings, body.webhook)
    with refusals.gathered():
        settled = _settled(body)
    handover_token = None
    with refusals.gathered():
        if body.deliver is not None:
            handover_token = locked_target(settings, body.deliver, "#/deliver")
    refusals.check()
    handover = new_handover(body.deliver.uri) if body.deliver else None
    new = posted_job(settings, team_id, body, settled.stored())
    return replace(new, handover=handover, handover_token=handover_token)


def posted_job(
    settings: Settings,
    team_id: str,
    body: JobCreate | AnalysisCreate,
    spec: dict[str, Any],
    kind: JobKind = JobKind.PASS,
) -> NewJob:
    """A job with what any body says of it.

    Args:
        spec: what it does; how much memory its owner asks for, if any, is added.

    Raises:
        InvalidInputError: it has a hub token and reads nothing from the hub.
    """
    memory = {} if body.device_memory is None else {"memory": {"asked": body.device_memory}}
    return NewJob(
        team_id=team_id,
        name=body.name,
        kind=kind,
        spec=spec | memory,
        priority=body.priority,
        device=body.device,
        labels=dict(body.labels),
        max_attempts=settings.max_attempts,
        webhook=body.webhook.model_dump(mode="json") if body.webhook else None,
        hub_token=locked_token(settings, body.hub_token, [uri for _, uri in references_of(body)]),
    )


def reused_key(key: str | None, made: str) -> InvalidInputError:
    """The error for an idempotency key that was used with another body."""
    detail = f"Idempotency-Key '{key}' came before with another body, for {made}; take a new key"
    errors = [FieldError(detail, parameter="Idempotency-Key")]
    return InvalidInputError(detail, code="idempotency_key_reused", errors=errors)


def locked_token(settings: Settings, token: SecretStr | None, uris: Sequence[str]) -> bytes | None:
    """The encrypted hub token of a job with these references.

    Raises:
        InvalidInputError: none of them is read from the hub.
    """
    if token is None:
        return None
    if not any(uri.startswith(HUB_PREFIX) for uri in uris):
        detail = f"is for {HUB_PREFIX} references, and there are none; leave it out"
        raise InvalidInputError(f"hub_token {detail}", errors=[FieldError(detail, pointer="#/hub_token")])
    return open_vault(settings).lock(token.get_secret_value())


def remember_answer(job: Job, text: str) -> None:
    """Store the answer to a request with an idempotency key, for when it is repeated."""
    if job.idempotency_key is not None:
        job.first_answer = text


def _settled(run: Run) -> SettledRun:
    """What a run means.

    Raises:
        InvalidInputError: something in it does not fit; it points at the field.
    """
    try:
        return run.settled()
    except ConfigError as error:
        detail = str(error)
        raise InvalidInputError(
            detail, code=error.code, errors=[FieldError(detail, pointer=f"#/{error.field or 'config'}")]
        ) from None


def uploads_of(run: Run | AnalysisRun) -> list[tuple[str, str]]:
    """The ids of the uploads that a run names, each with its place in the body."""
    given = references_of(run)
    return [(pointer, uri.removeprefix(UPLOAD_PREFIX)) for pointer, uri in given if uri.startswith(UPLOAD_PREFIX)]


CHECKPOINTS = ("#/checkpoint/uri", "#/against/uri")
"""The places of references to models."""


def references_of(run: Run | AnalysisRun) -> list[tuple[str, str]]:
    """The references of a run, each with its place in the body."""
    return [(f"#/{part}/uri", source.uri) for part, source in run.sources().items()]


def check_upload(session: Session, team_id: str, pointer: str, upload_id: str) -> None:
    """Check that an upload exists, and lock it until the transaction ends.

    Raises:
        InvalidInputError: the team has none of this id, or its name tells that it is no archive or no data.
    """
    upload = hold_upload(session, upload_id, team_id)
    if upload is None:
        raise refused(f"upload:{upload_id}", pointer, "is not an upload of your team; POST /v1/uploads makes one")
    name = upload.filename
    if pointer in CHECKPOINTS and not is_archive(name):
        kinds = ", ".join(ARCHIVE_SUFFIXES)
        raise refused(
            f"upload:{upload_id}", pointer, f"is '{name}', not an archive; upload a checkpoint as one of {kinds}"
        )
    if pointer not in CHECKPOINTS and data_suffix(name) is None:
        raise refused(f"upload:{upload_id}", pointer, f"is '{name}', which {why_not_data(name)}")


def check_reference(uri: str, pointer: str, *, is_checkpoint: bool, settings: Settings) -> None:
    """Refuse a reference that cannot work; ``pointer`` is its place in the body.

    Raises:
        InvalidInputError: unknown scheme, malformed, plain http, or a file outside of the opened roots or behind links in a
            circle.
    """
    try:
        reference = parse_reference(uri, is_checkpoint=is_checkpoint)
    except ReferenceFormError as error:
        raise _invalid(str(error), pointer) from None
    if reference.scheme is Scheme.HTTP and not settings.fetch.plain_http:
        raise refused(uri, pointer, "is not read over plain http; use an https:// address")
    if reference.scheme is Scheme.FILE:
        try:
            resolved = Path(reference.path).resolve()
        except (OSError, RuntimeError):
            raise refused(uri, pointer, "has links that lead in a circle; check the path") from None
        if not any(resolved.is_relative_to(root) for root in settings.file_roots):
            opened = ", ".join(map(str, settings.file_roots)) or "none"
            raise refused(uri, pointer, f"lies outside of the directories opened for file://, which are: {opened}")


def refused(uri: str, pointer: str, why: str) -> InvalidInputError:
    """The error for a reference; ``why`` goes on after "reference 'x'"."""
    return _invalid(f"reference '{shown(uri)}' {why}", pointer)


def _invalid(detail: str, pointer: str) -> InvalidInputError:
    return InvalidInputError(detail, code="invalid_reference", errors=[FieldError(detail, pointer=pointer)])

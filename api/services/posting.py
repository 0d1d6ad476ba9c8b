"""Posting a job: check its references, and create only one job for a repeated request."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import SecretStr
from sqlalchemy.orm import Session

from api.errors import FieldError, InvalidInputError, Refusals
from api.services.handovers import locked_target
from api.services.quotas import check_queued
from api.services.references import check_reference, refused
from api.services.webhooks import check_secret, check_webhook
from axformer.config import Preset, RunConfig, usual_preset
from axformer.config.goals import config_of_wish, parse_goal
from axformer.errors import ConfigError
from axformer.forms.kinds import COMPACT, KINDS
from axformer.repair.settings import completed, defaults_of
from axformer.wire.jobs import JobCreate
from store.references import HUB_PREFIX, UPLOAD_PREFIX
from store.repositories.files import hold_upload
from store.repositories.handovers import new_handover
from store.repositories.jobs import Created, NewJob, create_job
from store.settings import Settings
from store.signing import open_vault
from store.tables.jobs import Job


@dataclass(frozen=True)
class InGroup:
    """The group that a job belongs to, and its cell in the group."""

    group_id: str
    cell: Mapping[str, Any]


def submit(session: Session, settings: Settings, team_id: str, body: JobCreate, key: str | None) -> Created:
    """Queue a job, or find the one that a request with the same idempotency key created.

    Raises:
        InvalidInputError: a reference, a knob or the webhook cannot be used, or the key came with another body before.
        TooManyRequestsError: the team has as many queued jobs as it may have.
        ConflictError: the team stores as many bytes as it may store.
    """
    # Without defaults, so that a field added later does not change the hash of an earlier body.
    body_sha256 = hashlib.sha256(body.model_dump_json(exclude_defaults=True).encode()).digest()
    return queue_once(session, new_job(settings, team_id, body), uploads_of(body), key, body_sha256)


def queue_once(
    session: Session, new: NewJob, uploads: Sequence[tuple[str, str]], key: str | None, body_sha256: bytes
) -> Created:
    """Queue a job, or find the one that a request with the same idempotency key created.

    Args:
        session: whose transaction it is.
        new: the job, without key and hash.
        uploads: the ids of the uploads that it names, each with its place in the body.
        key: the idempotency key.
        body_sha256: the hash of the body.

    Raises:
        InvalidInputError: the team has no such upload or no secret for the webhook, or the key came with another body before.
        TooManyRequestsError: the team has as many queued jobs as it may have.
        ConflictError: the team stores as many bytes as it may store.
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


def new_job(settings: Settings, team_id: str, body: JobCreate, place: InGroup | None = None) -> NewJob:
    """The job that a body describes, without checking the team's uploads and limits.

    Raises:
        InvalidInputError: a reference, a knob or the webhook cannot be used.
    """
    refusals = Refusals()
    for pointer, uri in _references(body):
        with refusals.gathered():
            check_reference(uri, pointer, is_checkpoint=pointer.startswith("#/checkpoint"), settings=settings)
    with refusals.gathered():
        if body.webhook is not None:
            check_webhook(settings, body.webhook)
    with refusals.gathered():
        preset, config = _config(body)
    handover_token = None
    with refusals.gathered():
        if body.deliver is not None:
            handover_token = locked_target(settings, body.deliver, "#/deliver")
    refusals.check()
    if body.calibrate is not None:
        config = _calibrated(config)
    return NewJob(
        team_id=team_id,
        name=body.name,
        checkpoint=body.checkpoint.model_dump(exclude_none=True),
        validation=body.validation.model_dump(exclude_none=True),
        test=body.test.model_dump(exclude_none=True) if body.test else None,
        calibrate=body.calibrate.model_dump(exclude_none=True) if body.calibrate else None,
        train=body.train.model_dump(exclude_none=True) if body.train else None,
        finetune=_finetune(body, config),
        head=_head(body),
        preset=preset.value,
        config=config.model_dump(mode="json"),
        priority=body.priority,
        device=body.device,
        forms=[name for name in KINDS if name == COMPACT or name in body.forms],
        labels=dict(body.labels),
        max_attempts=settings.max_attempts,
        webhook=body.webhook.model_dump(mode="json") if body.webhook else None,
        handover=new_handover(body.deliver.uri) if body.deliver else None,
        handover_token=handover_token,
        hub_token=locked_token(settings, body.hub_token, [uri for _, uri in _references(body)]),
        **({} if place is None else vars(place)),
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
        raise unused_token()
    return open_vault(settings).lock(token.get_secret_value())


def unused_token() -> InvalidInputError:
    """The error for a hub token without any reference to the hub."""
    detail = f"is for {HUB_PREFIX} references, and there are none; leave it out"
    return InvalidInputError(f"hub_token {detail}", errors=[FieldError(detail, pointer="#/hub_token")])


def remember_answer(job: Job, text: str) -> None:
    """Store the answer to a request with an idempotency key, for when it is repeated."""
    if job.idempotency_key is not None:
        job.first_answer = text


def _config(body: JobCreate) -> tuple[Preset, RunConfig]:
    """The preset and the knobs that a body asks for."""
    if body.goal is not None and "preset" in body.model_fields_set:
        detail = f"a goal has its own preset; leave goal '{body.goal}' or preset '{body.preset.value}' out"
        raise InvalidInputError(detail, code=ConfigError.code, errors=[FieldError(detail, pointer="#/goal")])
    pointer = "#/goal"
    try:
        if body.goal is not None:
            parse_goal(body.goal)
        pointer = "#/config"
        preset = body.preset if "preset" in body.model_fields_set else usual_preset(body.config)
        return config_of_wish(body.goal, preset, body.config)
    except ConfigError as error:
        detail = str(error)
        raise InvalidInputError(detail, code=error.code, errors=[FieldError(detail, pointer=pointer)]) from None


def _calibrated(config: RunConfig) -> RunConfig:
    """The knobs of a job with calibration data."""
    if config.why_not_calibrated is None:
        return config.calibrated()
    detail = f"is data to fit weights on, and {config.why_not_calibrated}; leave it out"
    raise InvalidInputError(f"calibrate {detail}", errors=[FieldError(detail, pointer="#/calibrate")])


def _finetune(body: JobCreate, config: RunConfig) -> dict[str, Any] | None:
    if body.train is not None and config.why_not_trained is not None:
        detail = f"{config.why_not_trained}; give these rows as calibrate instead of train"
        raise InvalidInputError(detail, code=ConfigError.code, errors=[FieldError(detail, pointer="#/train")])
    if body.train is not None:
        try:
            return completed(body.finetune, defaults_of(config.method, body.head)).model_dump(mode="json")
        except ConfigError as error:
            raise InvalidInputError(str(error), errors=[FieldError(str(error), pointer="#/finetune")]) from None
    if config.why_training is not None:
        detail = f"{config.why_training}, and there is no training data; give train too"
        raise InvalidInputError(detail, code=ConfigError.code, errors=[FieldError(detail, pointer="#/config")])
    if body.finetune is None:
        return None
    detail = "says how to train, and train on what; give train too, or leave it out"
    raise InvalidInputError(f"finetune {detail}", errors=[FieldError(detail, pointer="#/finetune")])


def _head(body: JobCreate) -> dict[str, Any] | None:
    if body.head is None:
        return None
    if body.train is not None:
        return body.head.model_dump(mode="json")
    detail = "puts an untrained head on the model, which must then be trained; give train too"
    raise InvalidInputError(f"head {detail}", errors=[FieldError(detail, pointer="#/head")])


def uploads_of(body: JobCreate) -> list[tuple[str, str]]:
    """The ids of the uploads that a job names, each with its place in the body."""
    return uploads_among(_references(body))


def uploads_among(references: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The ids of the uploads among references, each with its place in the body."""
    return [(pointer, uri.removeprefix(UPLOAD_PREFIX)) for pointer, uri in references if uri.startswith(UPLOAD_PREFIX)]


def _references(body: JobCreate) -> list[tuple[str, str]]:
    """The references of a job, each with its place in the body."""
    sources = {"checkpoint": body.checkpoint, "validation": body.validation, "test": body.test}
    sources |= {"calibrate": body.calibrate, "train": body.train}
    return [(f"#/{part}/uri", source.uri) for part, source in sources.items() if source is not None]


def check_upload(session: Session, team_id: str, pointer: str, upload_id: str) -> None:
    """Check that an upload exists, and lock it until the transaction ends.

    Raises:
        InvalidInputError: the team has none of this id.
    """
    if hold_upload(session, upload_id, team_id) is None:
        raise refused(f"upload:{upload_id}", pointer, "is not an upload of your team; POST /v1/uploads makes one")

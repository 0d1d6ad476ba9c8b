"""Exports of models on the path of a finished job: a job that writes the model without a pass."""

import hashlib
from typing import Any

from sqlalchemy.orm import Session

from api.errors import NoSuchObjectError, WrongStateError
from api.services import jobs, posting
from api.services.quotas import check_queued
from axformer.forms.kinds import COMPACT, KINDS
from axformer.plan.trial import Trial
from axformer.wire.base import NAME_LENGTH
from axformer.wire.jobs import ExportCreate
from axformer.wire.states import JobKind
from store.references import UPLOAD_PREFIX
from store.repositories.files import hold_upload
from store.repositories.jobs import Created, NewJob, find_of_key
from store.repositories.trace_views import standing_trials
from store.repositories.trials import create_export
from store.settings import Settings
from store.states import JobState
from store.tables.jobs import Job


def submit(
    session: Session, settings: Settings, team_id: str, job_id: str, seq: int, body: ExportCreate, key: str | None
) -> Created:
    """Queue the export of a model, or find the one that a request with the same idempotency key created.

    Raises:
        NoSuchObjectError: the team has no such job, or its trial ``seq`` made no model.
        WrongStateError: the job has not succeeded, does not say what it worked on, or named an upload that is gone; or there is
            no room for results.
        InvalidInputError: the key came with another body before, or the hub token cannot be used.
        LimitReachedError: the team has as many queued jobs as it may have.
    """
    asked = f"{job_id} {seq} {body.model_dump_json(exclude_defaults=True)}"
    body_sha256 = hashlib.sha256(asked.encode()).digest()
    known = None if key is None else find_of_key(session, team_id, key)
    if known is not None and known.body_sha256 == body_sha256:  # also where the job that it was exported from is gone
        return Created(known, is_new=False)
    source = jobs.find(session, team_id, job_id)
    if source.state is not JobState.SUCCEEDED:
        detail = f"{job_id} is {source.state}; only a job that has succeeded can be exported from"
        raise WrongStateError(detail, code="wrong_state")
    last = next((trial for trial in standing_trials(session, job_id) if trial.seq == seq), None)
    if last is None:
        raise no_point(job_id, seq)
    progress = _progress(source, last)
    created = create_export(session, _job(settings, source, seq, body, key, body_sha256), progress)
    if created.is_new:
        _check_uploads(session, team_id, source)
        check_queued(session, team_id)
    elif created.job.body_sha256 != body_sha256:
        raise posting.reused_key(key, created.job.id)
    return created


def no_point(job_id: str, seq: int) -> NoSuchObjectError:
    """The error for a trial that led to no model."""
    detail = f"trial {seq} of job {job_id} was not accepted, so it made no model"
    return NoSuchObjectError(f"{detail}; GET /v1/jobs/{job_id}/path lists those that did", code="point_not_found")


def _job(settings: Settings, source: Job, seq: int, body: ExportCreate, key: str | None, body_sha256: bytes) -> NewJob:
    return NewJob(
        team_id=source.team_id,
        name=body.name or f"trial {seq} of {source.name}"[:NAME_LENGTH],
        spec=source.spec | {"forms": [name for name in KINDS if name == COMPACT or name in body.forms]},
        priority=source.priority,
        device=source.device,
        labels=source.labels,
        max_attempts=settings.max_attempts,
        idempotency_key=key,
        body_sha256=body_sha256 if key is not None else None,
        hub_token=posting.locked_token(settings, body.hub_token, [one["uri"] for one in source.sources.values()]),
        kind=JobKind.EXPORT,
        exported_from=source.id,
        upto=seq,
    )


def _progress(source: Job, last: Trial) -> dict[str, Any]:
    """The progress of the pass at its trial ``last``, with the digests of its inputs.

    Raises:
        WrongStateError: the job has no digests, so an export could not check that its inputs are unchanged.
    """
    before = source.progress or {}
    if "inputs" not in before:
        detail = f"{source.id} does not say with which checkpoint and data it worked; its plan is still there"
        raise WrongStateError(f"{detail}: GET /v1/jobs/{source.id}/path/{last.seq}/plan", code="inputs_unknown")
    now: dict[str, Any] = {"done": last.seq + 1, "known": last.seq + 1, "seconds": last.seconds, "seconds_left": 0.0}
    now |= {"min_loss": last.min_loss}
    # How fast its plan is estimated to be is known when the model is there.
    kept = {name: value for name, value in before.items() if name not in ("operations", "estimated_speedup", "kept")}
    return kept | now


def _check_uploads(session: Session, team_id: str, source: Job) -> None:
    for part, reference in source.sources.items():
        uri = reference["uri"]
        if uri.startswith(UPLOAD_PREFIX) and hold_upload(session, uri.removeprefix(UPLOAD_PREFIX), team_id) is None:
            detail = f"the {part} of {source.id} was '{uri}', which has been deleted since; its plan is still there"
            raise WrongStateError(f"{detail}: GET /v1/jobs/{source.id}/path/SEQ/plan", code="upload_gone")

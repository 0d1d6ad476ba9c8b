"""Posting an analysis: a job that reports on a model."""

import hashlib

from sqlalchemy.orm import Session

from api.errors import FieldError, InvalidInputError, Refusals
from api.services import posting
from api.services.posting import check_reference
from api.services.webhooks import check_webhook
from axformer.wire.analyses import AnalysisCreate, AnalysisRun
from axformer.wire.states import JobKind
from store.repositories.jobs import Created, NewJob
from store.settings import Settings

_NEEDS = {
    "features": ("train", "lets a classifier learn from training rows"),
    "drift": ("against", "compares two models"),
}
"""What a report needs, and why."""


def submit(session: Session, settings: Settings, team_id: str, body: AnalysisCreate, key: str | None) -> Created:
    """Queue an analysis, or find the job that a request with the same idempotency key created.

    Raises:
        InvalidInputError: a reference or the webhook cannot be used, a report lacks an input, or the key came with another
            body before.
        LimitReachedError: the team has as many queued jobs as it may have.
        WrongStateError: the team stores as many bytes as it may store.
    """
    asked = f"analysis {body.model_dump_json(exclude_defaults=True)}"
    new = _job(settings, team_id, body)
    return posting.queue_once(session, new, posting.uploads_of(body), key, hashlib.sha256(asked.encode()).digest())


def _job(settings: Settings, team_id: str, body: AnalysisCreate) -> NewJob:
    refusals = Refusals()
    for pointer, uri in posting.references_of(body):
        with refusals.gathered():
            check_reference(uri, pointer, is_checkpoint=pointer in posting.CHECKPOINTS, settings=settings)
    for name in body.reports or ():
        with refusals.gathered():
            _check_report(body, name)
    with refusals.gathered():
        if body.webhook is not None:
            check_webhook(settings, body.webhook)
    refusals.check()
    spec = {"run": body.model_dump(mode="json", exclude_unset=True, include=set(AnalysisRun.model_fields))}
    return posting.posted_job(settings, team_id, body, spec, JobKind.ANALYSIS)


def _check_report(body: AnalysisCreate, name: str) -> None:
    needed, why = _NEEDS.get(name, (None, ""))
    if needed is not None and getattr(body, needed) is None:
        detail = f"report '{name}' {why}; give {needed} too, or leave the report out"
        raise InvalidInputError(detail, errors=[FieldError(detail, pointer=f"#/{needed}")])

"""Results on their way to where their owners want them: asked for, taken on by workers, and done or failed.

A worker that is at one keeps ``handover_at`` ahead of the database's clock; when it is lost, another takes it on. A number,
``round``, grows with each request and each attempt, and what an earlier one reports is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, func, select, update
from sqlalchemy.orm import Session, undefer

from axformer.wire.handovers import HandoverState
from axformer.wire.webhooks import WebhookEvent
from store.repositories.events import record_event
from store.repositories.moves import WORKER_LOST, lock_job
from store.states import JobState
from store.tables.jobs import Job


@dataclass(frozen=True)
class Claimed:
    """A handover that this worker has taken on."""

    job_id: str
    uri: str
    round: int
    attempts: int
    token: bytes | None = field(repr=False)


def new_handover(uri: str) -> dict[str, Any]:
    """The column of a job that is to be handed over."""
    return {"uri": uri, "state": HandoverState.WAITING.value, "round": 1, "attempts": 0}


def ask(session: Session, job_id: str, uri: str, token: bytes) -> Job:
    """Have the files of a job put somewhere, when it has succeeded, whatever was asked for before."""
    job = lock_job(session, job_id)
    earlier = job.handover["round"] if job.handover else 0
    job.handover = new_handover(uri) | {"round": earlier + 1, "changed_at": _now(session)}
    job.handover_token = token
    job.handover_at = None
    if job.state is JobState.SUCCEEDED:
        job.handover_at = func.clock_timestamp()
    session.flush()
    return job


def claim_handover(session: Session, seconds: float, *, most: int) -> Claimed | None:
    """Take on what has waited longest, for some seconds; None if nothing is due.

    What was lost with its worker in the last attempt, the ``most``-th, has failed: what is sent may be what ends the workers.
    """
    due = (Job.handover_at <= func.clock_timestamp(), Job.state == JobState.SUCCEEDED)
    query = select(Job).where(*due).order_by(Job.handover_at).limit(1).with_for_update(skip_locked=True, key_share=True)
    query = query.options(undefer(Job.handover_token)).execution_options(populate_existing=True)
    while (job := session.scalars(query).one_or_none()) is not None:
        assert job.handover is not None
        if job.handover["attempts"] < most:
            return _taken_on(session, job, job.handover, seconds)
        lost = Claimed(job.id, job.handover["uri"], job.handover["round"], job.handover["attempts"], token=None)
        message = f"the worker was lost in the last of {lost.attempts} attempts; ask for it again, or tell the operator"
        _settle(session, lost, HandoverState.FAILED, {"error": {"code": WORKER_LOST, "message": message}})
        session.flush()
    return None


def _taken_on(session: Session, job: Job, handover: Mapping[str, Any], seconds: float) -> Claimed:
    step = {"round": handover["round"] + 1, "attempts": handover["attempts"] + 1}
    job.handover = {**handover, **step} | {"state": HandoverState.SENDING.value, "changed_at": _now(session)}
    job.handover_at = func.clock_timestamp() + timedelta(seconds=seconds)
    session.flush()
    return Claimed(job.id, handover["uri"], **step, token=job.handover_token)


def renew_handover(session: Session, claimed: Claimed, seconds: float) -> bool:
    """Stay at it for some more seconds; False if it is no longer this worker's."""
    mine = (Job.id == claimed.job_id, Job.handover["round"].as_integer() == claimed.round)
    until = func.clock_timestamp() + timedelta(seconds=seconds)
    found: Row[Any] | None = session.execute(
        update(Job).where(*mine).values(handover_at=until).returning(Job.id),
        execution_options={"synchronize_session": False},
    ).one_or_none()
    return found is not None


def finish_handover(session: Session, claimed: Claimed, *, files: int, bytes: int) -> bool:
    """Record that the files are there; False if it is no longer this worker's."""
    return _settle(session, claimed, HandoverState.DONE, {"files": files, "bytes": bytes, "error": None})


def fail_handover(session: Session, claimed: Claimed, error: Mapping[str, Any], *, retry_in: float | None) -> bool:
    """Record why an attempt failed, and when the next one is due, if any; False if it is no longer this worker's."""
    if retry_in is None:
        return _settle(session, claimed, HandoverState.FAILED, {"error": dict(error)})
    return _settle(session, claimed, HandoverState.WAITING, {"error": dict(error)}, retry_in)


def _settle(
    session: Session, claimed: Claimed, state: HandoverState, told: Mapping[str, Any], retry_in: float | None = None
) -> bool:
    query = select(Job).where(Job.id == claimed.job_id).with_for_update(key_share=True)
    job = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if job is None or job.handover is None or job.handover["round"] != claimed.round:
        return False
    job.handover = {**job.handover, **told} | {"state": state.value, "changed_at": _now(session)}
    job.handover_at = None
    if retry_in is not None:
        job.handover_at = func.clock_timestamp() + timedelta(seconds=retry_in)
        session.flush()
        return True
    job.handover_token = None
    event = WebhookEvent.DELIVERED if state is HandoverState.DONE else WebhookEvent.NOT_DELIVERED
    record_event(session, job, event, {"uri": claimed.uri, **{name: value for name, value in told.items() if value}})
    return True


def _now(session: Session) -> str:
    """The time by the database's clock, as it stands in the column."""
    now: datetime = session.scalars(select(func.clock_timestamp())).one()
    return now.isoformat()

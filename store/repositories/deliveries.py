"""Webhooks: messages about a job's events, written with the event and sent by workers, and the secrets that sign them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from secrets import token_bytes

from sqlalchemy import delete, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from axformer.wire.webhooks import DeliveryState
from store.ids import MESSAGE_PREFIX, WEBHOOK_SECRET_PREFIX, new_id
from store.page import Page, page_of
from store.settings import Settings
from store.signing import SALT_BYTES, SigningKey, open_vault, signing_key, webhook_secret
from store.tables.jobs import Event, Job
from store.tables.teams import Team
from store.tables.webhooks import Delivery, WebhookSecret

GONE = 410
"""The HTTP status with which a receiver declines further messages."""
_STOPPED = "the receiver said 410 Gone to an earlier message of this job, so nothing more is sent by itself"
_LOST = "the worker that sent it was lost"
_Other = aliased(Delivery)


@dataclass(frozen=True)
class Attempt:
    """The outcome of one attempt to send a message."""

    status: int | None
    """HTTP status; None if there was no answer."""
    error: str | None
    """Why it failed; None if it succeeded."""


def add_delivery(session: Session, job: Job, event: Event) -> None:
    """Write the message of an event, if the job's webhook subscribes to its type. The job is locked, as for the event."""
    assert job.webhook is not None
    if event.type not in job.webhook["events"]:
        return
    message = {
        "type": event.type,
        "timestamp": event.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "data": {"job_id": job.id, "name": job.name, "labels": job.labels, "seq": event.seq, "details": event.data},
    }
    stopped = exists().where(Delivery.job_id == job.id, Delivery.last_status == GONE)
    is_stopped = session.scalars(select(stopped)).one()
    row = Delivery(
        job_id=job.id,
        seq=event.seq,
        id=new_id(MESSAGE_PREFIX),
        team_id=job.team_id,
        type=event.type,
        url=job.webhook["url"],
        body=json.dumps(message),
        state=DeliveryState.DEAD if is_stopped else DeliveryState.PENDING,
        attempts=0,
        next_at=func.clock_timestamp(),
        last_error=_STOPPED if is_stopped else None,
    )
    session.add(row)
    session.flush()


def claim_delivery(session: Session, *, seconds: float, most: int) -> Delivery | None:
    """Claim the message that has waited longest, for some seconds, and count an attempt. None if none is due.

    Of two messages to one address, one waits for the other, so that a receiver that hangs does not hold up the others. A
    message whose sender was lost in the last attempt, the ``most``-th, is dead.
    """
    now = func.clock_timestamp()
    busy = exists().where(_Other.url == Delivery.url, _Other.sending_until > now)
    is_free = or_(Delivery.sending_until.is_(None), Delivery.sending_until <= now)
    query = (
        select(Delivery)
        .where(Delivery.state == DeliveryState.PENDING, Delivery.next_at <= now, is_free, ~busy)
        .order_by(Delivery.next_at, Delivery.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=Delivery)
        .execution_options(populate_existing=True)
    )
    while (delivery := session.scalars(query).one_or_none()) is not None:
        if delivery.attempts < most:
            delivery.attempts += 1
            delivery.attempted_at = now
            delivery.sending_until = now + timedelta(seconds=seconds)
            session.flush()
            return delivery
        delivery.state, delivery.sending_until, delivery.last_error = DeliveryState.DEAD, None, _LOST
        session.flush()
    return None


def settle(session: Session, sent: Delivery, attempt: Attempt, *, retry_in: float | None) -> None:
    """Record the outcome of the attempt that ``sent`` was claimed for, unless the message has been claimed again since.

    Args:
        sent: the message as it was claimed.
        retry_in: seconds until the next attempt if this one failed; None if no attempt is left.
    """
    query = select(Delivery).where(Delivery.job_id == sent.job_id, Delivery.state == DeliveryState.PENDING)
    locked = session.scalars(
        query.order_by(Delivery.seq).with_for_update().execution_options(populate_existing=True)
    ).all()
    delivery = next((row for row in locked if row.seq == sent.seq and row.attempts == sent.attempts), None)
    if delivery is None:
        return
    delivery.sending_until, delivery.last_status, delivery.last_error = None, attempt.status, attempt.error
    if attempt.error is None:
        delivery.state = DeliveryState.DELIVERED
    elif attempt.status == GONE or retry_in is None:
        delivery.state = DeliveryState.DEAD
    else:
        delivery.next_at = func.clock_timestamp() + timedelta(seconds=retry_in)
    if attempt.status == GONE:
        _stop_others(locked, delivery)
    session.flush()


def deliveries_after(session: Session, job_id: str, *, after: int, limit: int) -> Page[Delivery]:
    """The job's messages of events with numbers above ``after``, oldest first."""
    query = select(Delivery).where(Delivery.job_id == job_id, Delivery.seq > after).order_by(Delivery.seq)
    return page_of(session.scalars(query.limit(limit + 1)).all(), limit)


def redeliver(session: Session, job_id: str, delivery_id: str) -> Delivery | None:
    """Queue a message again with all its attempts, whatever its state. None if the job has no such message."""
    query = select(Delivery).where(Delivery.job_id == job_id, Delivery.id == delivery_id).with_for_update()
    delivery = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if delivery is not None:
        delivery.state, delivery.attempts, delivery.sending_until = DeliveryState.PENDING, 0, None
        delivery.next_at = func.clock_timestamp()
        session.flush()
        session.refresh(delivery)
    return delivery


def _stop_others(locked: Sequence[Delivery], kept: Delivery) -> None:
    for row in locked:
        if row is not kept:
            row.state, row.sending_until, row.last_error = DeliveryState.DEAD, None, _STOPPED


@dataclass(frozen=True)
class NewSecret:
    """A new secret. Its text is shown once and never stored."""

    row: WebhookSecret
    text: str


def create_secret(session: Session, team_id: str, key: SigningKey, overlap: timedelta) -> NewSecret:
    """Create a secret. The previous one signs for another ``overlap`` and older ones are removed, so at most two are valid."""
    session.execute(select(Team.id).where(Team.id == team_id).with_for_update(key_share=True))  # one at a time
    now = func.clock_timestamp()
    newest = next(iter(valid_secrets(session, team_id)), None)
    kept = newest.id if newest is not None else None
    older = (WebhookSecret.team_id == team_id, WebhookSecret.id.is_distinct_from(kept))
    session.execute(delete(WebhookSecret).where(*older))
    if newest is not None:
        newest.expires_at = func.least(WebhookSecret.expires_at, now + overlap)
    salt = token_bytes(SALT_BYTES)
    row = WebhookSecret(id=new_id(WEBHOOK_SECRET_PREFIX), team_id=team_id, salt=salt, key_fingerprint=key.fingerprint)
    session.add(row)
    session.flush()
    return NewSecret(row, key.secret(salt))


def renew_secrets(session: Session, settings: Settings) -> int:
    """Store the secrets that were derived from an old key encrypted with the new one, so that receivers notice nothing; the
    number of those that are stored so.

    Raises:
        VaultKeyError: the key of one is not named any more.
    """
    is_old = WebhookSecret.key_fingerprint != signing_key(settings).fingerprint
    rows = session.scalars(
        select(WebhookSecret).where(is_old | WebhookSecret.sealed.is_not(None)).with_for_update()
    ).all()
    for row in rows:
        row.sealed = open_vault(settings).lock(webhook_secret(settings, row.salt, row.key_fingerprint, row.sealed))
    session.flush()
    return len(rows)


def valid_secrets(session: Session, team_id: str) -> Sequence[WebhookSecret]:
    """The team's currently valid secrets, the newest first."""
    valid = or_(WebhookSecret.expires_at.is_(None), WebhookSecret.expires_at > func.clock_timestamp())
    query = select(WebhookSecret).where(WebhookSecret.team_id == team_id, valid)
    return session.scalars(query.order_by(WebhookSecret.expires_at.desc().nulls_first(), WebhookSecret.id.desc())).all()


def delete_secret(session: Session, team_id: str, secret_id: str) -> bool:
    """Delete a secret, which stops signing at the commit. False if the team has no secret with this id."""
    mine = (WebhookSecret.team_id == team_id, WebhookSecret.id == secret_id)
    gone = session.execute(delete(WebhookSecret).where(*mine).returning(WebhookSecret.id))
    return gone.scalar_one_or_none() is not None

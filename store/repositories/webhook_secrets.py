"""Secrets that sign a team's webhooks: the newest, and for a while the one before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from secrets import token_bytes

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from store.ids import WEBHOOK_SECRET_PREFIX, new_id
from store.signing import SALT_BYTES, SigningKey
from store.tables.teams import Team
from store.tables.webhooks import WebhookSecret


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
    return NewSecret(row, key.secret(salt, key.fingerprint))


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

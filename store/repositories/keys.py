"""API keys, written ``axk_<id>_<secret>``. The id finds the row; the secret's hash is compared in constant time."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import bindparam, func, or_, select, update
from sqlalchemy.orm import Session

from store.tables.teams import ApiKey, Team

KEY_PREFIX = "axk"
_ID_BYTES = 8
"""Enough that ids do not collide; the id is no secret."""
_SECRET_BYTES = 32
"""256 bits, beyond guessing, so that a fast hash may be stored."""
_KEY = re.compile(rf"{KEY_PREFIX}_(?P<id>[0-9a-f]{{{2 * _ID_BYTES}}})_(?P<secret>[0-9a-f]{{{2 * _SECRET_BYTES}}})")
_USE_NOTED_EVERY = timedelta(minutes=1)
"""How exact ``last_used_at`` is; finer would write a row at every request."""

_IS_USE_STALE = or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at < func.clock_timestamp() - _USE_NOTED_EVERY)
# Made once and of columns alone, because every request asks it.
_FOUND_BY_ID = (
    select(
        ApiKey.id,
        ApiKey.team_id,
        ApiKey.secret_sha256,
        ApiKey.revoked_at,
        Team.name.label("team_name"),
        _IS_USE_STALE.label("is_use_stale"),
    )
    .join(Team, Team.id == ApiKey.team_id)
    .where(ApiKey.id == bindparam("key_id"))
)


@dataclass(frozen=True)
class NewKey:
    """A key that was just made. The text is shown once and stored nowhere."""

    id: str
    text: str


@dataclass(frozen=True)
class Caller:
    """Who a valid key stands for."""

    key_id: str
    team_id: str
    team_name: str


def create_key(session: Session, team_id: str, name: str) -> NewKey:
    """Make a key for a team."""
    key_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_hex(_SECRET_BYTES)
    session.add(ApiKey(id=key_id, team_id=team_id, name=name, secret_sha256=_hash(secret)))
    session.flush()
    return NewKey(id=key_id, text=f"{KEY_PREFIX}_{key_id}_{secret}")


def authenticate(session: Session, text: str) -> Caller | None:
    """Whom the key stands for; null where it is malformed, unknown, wrong or revoked."""
    parts = _KEY.fullmatch(text)
    if parts is None:
        return None
    found = session.execute(_FOUND_BY_ID, {"key_id": parts["id"]}).one_or_none()
    if found is None or found.revoked_at is not None:
        return None
    if not hmac.compare_digest(found.secret_sha256, _hash(parts["secret"])):
        return None
    if found.is_use_stale:
        _note_use(session, found.id)
    return Caller(key_id=found.id, team_id=found.team_id, team_name=found.team_name)


def revoke_key(session: Session, key_id: str) -> bool:
    """Make a key invalid from the commit on; it stays listed. False where there is no valid key of this id."""
    valid = (ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
    revoked = update(ApiKey).where(*valid).values(revoked_at=func.clock_timestamp()).returning(ApiKey.id)
    return session.execute(revoked).scalar_one_or_none() is not None


def _note_use(session: Session, key_id: str) -> None:
    noted = update(ApiKey).where(ApiKey.id == key_id, _IS_USE_STALE).values(last_used_at=func.clock_timestamp())
    session.execute(noted, execution_options={"synchronize_session": False})


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()

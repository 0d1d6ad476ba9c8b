"""API keys, written ``axk_<id>_<secret>``. The id finds the row; the secret's hash is compared in constant time."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from sqlalchemy import bindparam, delete, func, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from axformer.wire.scopes import Scope
from store.page import Page, page_of
from store.tables.teams import ApiKey, EndedSession, Team

KEY_PREFIX = "axk"
_ID_BYTES = 8
"""Enough that ids do not collide; the id is not a secret."""
_SECRET_BYTES = 32
"""256 bits, beyond guessing, so that a fast hash may be stored."""
_KEY = re.compile(rf"{KEY_PREFIX}_(?P<id>[0-9a-f]{{{2 * _ID_BYTES}}})_(?P<secret>[0-9a-f]{{{2 * _SECRET_BYTES}}})")
_KEY_ID = re.compile(rf"[0-9a-f]{{{2 * _ID_BYTES}}}")
_USE_NOTED_EVERY = timedelta(minutes=1)
"""Precision of ``last_used_at``; a finer one would write a row at every request."""
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC)
"""The end of a key whose lifetime would last longer than there are years."""

_NOW = func.clock_timestamp()
_IS_USE_STALE = or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at < _NOW - _USE_NOTED_EVERY)
_IS_EXPIRED = func.coalesce(ApiKey.expires_at <= _NOW, False)
_IS_VALID = (ApiKey.revoked_at.is_(None), ~_IS_EXPIRED)
# Built once and of columns alone, because every request runs it.
_FOUND_BY_ID = (
    select(
        ApiKey.id,
        ApiKey.team_id,
        ApiKey.secret_sha256,
        ApiKey.scope,
        ApiKey.revoked_at,
        Team.name.label("team_name"),
        _IS_EXPIRED.label("is_expired"),
        _IS_USE_STALE.label("is_use_stale"),
    )
    .join(Team, Team.id == ApiKey.team_id)
    .where(ApiKey.id == bindparam("key_id"))
)
# A locked row is left to the next request, which records its own use, so no request waits here.
_NOTE_USE = (
    update(ApiKey)
    .where(
        ApiKey.id.in_(
            select(ApiKey.id)
            .where(ApiKey.id == bindparam("key_id"), _IS_USE_STALE)
            .with_for_update(skip_locked=True, key_share=True)
        )
    )
    .values(last_used_at=_NOW)
    .execution_options(synchronize_session=False)
)


@dataclass(frozen=True)
class NewKey:
    """A new key. Its text is shown once and never stored."""

    row: ApiKey
    text: str

    @property
    def id(self) -> str:
        """The public part of the key."""
        return self.row.id


@dataclass(frozen=True)
class Caller:
    """The team and the rights that a valid key stands for."""

    key_id: str
    team_id: str
    team_name: str
    scope: Scope
    address: str | None = None
    """Where the request came from."""


class Reason(StrEnum):
    """Why a key is refused."""

    UNKNOWN = "unknown"
    """The key is malformed, or its id does not exist."""
    WRONG = "wrong"
    """The id exists, but with another secret."""
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True)
class Refusal:
    """A refused key, and the team that it seems to belong to if its id exists."""

    reason: Reason
    key_id: str | None = None
    team_id: str | None = None


def create_key(
    session: Session, team_id: str, name: str, scope: Scope = Scope.WRITE, expires_at: datetime | None = None
) -> NewKey:
    """Make a key for a team."""
    key_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_hex(_SECRET_BYTES)
    row = ApiKey(id=key_id, team_id=team_id, name=name, scope=scope, expires_at=expires_at, secret_sha256=_hash(secret))
    session.add(row)
    session.flush()
    return NewKey(row=row, text=f"{KEY_PREFIX}_{key_id}_{secret}")


def recognise(session: Session, text: str) -> Caller | Refusal:
    """The caller that the key belongs to, or why it is refused. Its use is recorded once a minute."""
    parts = _KEY.fullmatch(text)
    row = session.execute(_FOUND_BY_ID, {"key_id": parts["id"]}).one_or_none() if parts else None
    if parts is None or row is None:
        return Refusal(Reason.UNKNOWN)
    if not hmac.compare_digest(row.secret_sha256, _hash(parts["secret"])):
        return Refusal(Reason.WRONG, row.id, row.team_id)
    if row.revoked_at is not None:
        return Refusal(Reason.REVOKED, row.id, row.team_id)
    if row.is_expired:
        return Refusal(Reason.EXPIRED, row.id, row.team_id)
    _note_use(session, row.id, is_stale=row.is_use_stale)
    return Caller(key_id=row.id, team_id=row.team_id, team_name=row.team_name, scope=row.scope)


def authenticate(session: Session, text: str) -> Caller | None:
    """The caller that the key belongs to; None if it is malformed, unknown, wrong, revoked or expired."""
    recognised = recognise(session, text)
    return recognised if isinstance(recognised, Caller) else None


def is_still_valid(session: Session, key_id: str) -> bool:
    """Whether a key that was recognised before is still valid. Its use is recorded once a minute."""
    row = session.execute(_FOUND_BY_ID, {"key_id": key_id}).one_or_none()
    if row is None or row.revoked_at is not None or row.is_expired:
        return False
    _note_use(session, row.id, is_stale=row.is_use_stale)
    return True


def find_key(session: Session, key_id: str, team_id: str | None = None) -> ApiKey | None:
    """The key with this id, valid or not, and only if it belongs to the given team."""
    if not _KEY_ID.fullmatch(key_id):
        return None
    query = select(ApiKey).where(ApiKey.id == key_id)
    return session.scalars(query if team_id is None else query.where(ApiKey.team_id == team_id)).one_or_none()


def list_keys(session: Session, team_id: str, *, after: ApiKey | None = None, limit: int) -> Page[ApiKey]:
    """The team's keys, valid or not, the newest first: those created before ``after``."""
    query = select(ApiKey).where(ApiKey.team_id == team_id)
    if after is not None:
        query = query.where(tuple_(ApiKey.created_at, ApiKey.id) < (after.created_at, after.id))
    query = query.order_by(ApiKey.created_at.desc(), ApiKey.id.desc()).limit(limit + 1)
    return page_of(session.scalars(query).all(), limit)


def lock_key(session: Session, key: ApiKey) -> bool:
    """Block other changes of the team's keys until the transaction ends, and return whether this key is valid."""
    session.execute(select(Team.id).where(Team.id == key.team_id).with_for_update(key_share=True)).one()
    session.refresh(key)
    return session.scalars(select(ApiKey.id).where(ApiKey.id == key.id, *_IS_VALID)).one_or_none() is not None


def is_last_admin(session: Session, key: ApiKey) -> bool:
    """Whether, without this key, the team would have no valid admin key, or only admin keys that expire sooner."""
    if key.scope != Scope.ADMIN:
        return False
    forever = ApiKey.expires_at.is_(None)
    lasts = forever if key.expires_at is None else or_(forever, ApiKey.expires_at >= key.expires_at)
    others = (ApiKey.team_id == key.team_id, ApiKey.id != key.id, ApiKey.scope == Scope.ADMIN, lasts, *_IS_VALID)
    return session.scalars(select(ApiKey.id).where(*others).limit(1)).one_or_none() is None


def replace_key(session: Session, key: ApiKey, grace: timedelta) -> NewKey:
    """Create a key like this one, which stays valid for ``grace`` at most. The new key gets the same lifetime, if any."""
    now = session.scalars(select(_NOW)).one()
    expires_at = None if key.expires_at is None else _later(now, key.expires_at - key.created_at)
    new_key = create_key(session, key.team_id, key.name, key.scope, expires_at)
    key.expires_at = min(key.expires_at or now + grace, now + grace)
    key.replaced_by = new_key.id
    session.flush()
    return new_key


def _later(now: datetime, lifetime: timedelta) -> datetime:
    try:
        return now + lifetime
    except OverflowError:
        return _LAST_MOMENT


def revoke_key(session: Session, key_id: str) -> bool:
    """Revoke a key from the commit on; it stays listed. False if no unrevoked key has this id."""
    valid = (ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
    revoked = update(ApiKey).where(*valid).values(revoked_at=_NOW).returning(ApiKey.id)
    return session.execute(revoked).scalar_one_or_none() is not None


def end_session(session: Session, session_id: str, within: timedelta) -> None:
    """End a session of the pages, whose cookie is valid for so long at most, and forget those that are too old anyway."""
    session.execute(delete(EndedSession).where(EndedSession.until < _NOW))
    session.execute(insert(EndedSession).values(id=session_id, until=_NOW + within).on_conflict_do_nothing())


def has_ended(session: Session, session_id: str) -> bool:
    """Whether a session was ended by signing out."""
    return session.get(EndedSession, session_id) is not None


def _note_use(session: Session, key_id: str, *, is_stale: bool) -> None:
    if is_stale:
        session.execute(_NOTE_USE, {"key_id": key_id})


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()

"""The audit log: who changed what, signed in or out, downloaded what, and which keys were refused.

Entries are written without waiting for each other. Workers chain them a few seconds later, one worker at a time: each then
holds the SHA-256 of the one before it, and never changes again. What counts is chained when its hour is over.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from store import locks
from store.page import Page, page_of
from store.repositories.keys import Caller
from store.tables.audit import IS_COUNTED, IS_REFUSED, REFUSED, AuditEntry

SIGNED_IN, SIGNED_OUT, DOWNLOAD = "session.begin", "session.end", "artifact.download"
_HOUR = func.date_trunc("hour", func.clock_timestamp())
_FIRST = bytes(32)
"""What stands for the entry before the first."""


@dataclass(frozen=True)
class Operator:
    """The operator of the service, on its command line."""

    team_id: str
    key_id: None = None
    address: None = None


Actor = Caller | Operator
"""The author of a change in a team."""


def note(session: Session, actor: Actor, action: str, *object_ids: str) -> None:
    """Record this transaction's action on each of these objects; the record commits with it."""
    who = {"team_id": actor.team_id, "key_id": actor.key_id, "address": actor.address, "action": action}
    if object_ids:
        session.execute(insert(AuditEntry).values([who | {"object_id": object_id} for object_id in object_ids]))


def count_refusal(session: Session, team_id: str, key_id: str, address: str | None) -> None:
    """Record that a key was refused. There is one entry per key and hour, with the latest address."""
    entry = {"team_id": team_id, "key_id": key_id, "action": REFUSED, "address": address}
    _count(session, entry, index_elements=["key_id", "hour"], index_where=IS_REFUSED)


def count_download(session: Session, actor: Actor, content: str) -> None:
    """Record that content was handed out, whole or in parts. There is one entry per key, address, content and hour."""
    entry = {"team_id": actor.team_id, "key_id": actor.key_id, "address": actor.address, "object_id": content}
    elements = ["key_id", "action", "object_id", "address", "hour"]
    _count(session, entry | {"action": DOWNLOAD}, index_elements=elements, index_where=IS_COUNTED)


def _count(session: Session, entry: Mapping[str, Any], **index: Any) -> None:
    """One statement: an entry that is in the chain is left alone, and another one counts on."""
    counted = insert(AuditEntry).values({**entry, "hour": _HOUR})
    more = {"times": AuditEntry.times + 1, "address": counted.excluded.address}
    session.execute(counted.on_conflict_do_update(**index, set_=more))


def chain(session: Session, most: int) -> str | None:
    """Chain entries that wait; the new head, or None if there are none or another transaction is at it."""
    if not session.scalar(select(func.pg_try_advisory_xact_lock(locks.AUDIT))):
        return None
    settled = (AuditEntry.link.is_(None), or_(AuditEntry.hour.is_(None), AuditEntry.hour < _HOUR))
    query = select(AuditEntry).where(*settled).order_by(AuditEntry.id).limit(most).with_for_update(skip_locked=True)
    rows = session.scalars(query.execution_options(populate_existing=True)).all()
    head = select(AuditEntry.link, AuditEntry.sha256).where(AuditEntry.link.is_not(None))
    last = session.execute(head.order_by(AuditEntry.link.desc()).limit(1)).one_or_none()
    link, sha256 = (last.link, last.sha256) if last else (0, _FIRST)
    for row in rows:
        row.link, row.previous = link + 1, sha256
        row.sha256 = _digest(row)
        link, sha256 = row.link, row.sha256
    session.flush()
    return f"{link}:{sha256.hex()}" if rows else None


@dataclass(frozen=True)
class ChainFound:
    """What a check of the chain has found."""

    head: str
    """Number and SHA-256 of the last entry: who knows it from elsewhere notices a chain that was cut off or made anew."""
    waiting: int
    """Entries that are not chained yet."""
    broken: str | None
    """Where the chain breaks first, and how."""


def check_chain(session: Session, known: str | None = None) -> ChainFound:
    """Read the whole chain and see where it breaks, if anywhere.

    Args:
        known: a head of before; it must still be in the chain, unless it was removed for its age.
    """
    number = int((known or "").partition(":")[0] or 0)
    link, sha256, broken = 0, _FIRST, None
    query = select(AuditEntry).where(AuditEntry.link.is_not(None)).order_by(AuditEntry.link)
    for row in session.scalars(query.execution_options(yield_per=1000)):
        assert row.link is not None
        if not link and row.link > 1:  # what came before was removed for its age
            link, sha256 = row.link - 1, row.previous or b""
        broken = broken or _break(row, link, sha256)
        link, sha256 = row.link, row.sha256 or b""
        if link == number and known != f"{link}:{sha256.hex()}":
            broken = broken or f"entry {link} is not the one that was there"
    if number > link:
        broken = broken or f"entry {number}, which was there, and all after {link} are gone"
    waiting = session.scalar(select(func.count()).where(AuditEntry.link.is_(None))) or 0
    return ChainFound(f"{link}:{sha256.hex()}", waiting, broken)


def _break(row: AuditEntry, link: int, sha256: bytes) -> str | None:
    """How the chain breaks at a row after another; None if it does not."""
    if row.link != link + 1:
        return f"entries {link + 1} to {(row.link or 0) - 1} are gone"
    if row.sha256 != _digest(row):
        return f"entry {row.link} was changed (id {row.id}, {row.action} by {row.key_id or 'operator'})"
    return None if row.previous == sha256 else f"entry {row.link} does not follow the one before it"


def _digest(row: AuditEntry) -> bytes:
    """SHA-256 over the entry before and the content, as a JSON list."""
    times = [None if time is None else time.isoformat() for time in (row.hour, row.created_at)]  # sessions have UTC
    who = [row.team_id, row.key_id, row.action, row.object_id, row.address, row.times]
    content = json.dumps([row.link, row.id, *who, *times], separators=(",", ":")).encode()
    return hashlib.sha256((row.previous or b"") + content).digest()


def entries_before(session: Session, team_id: str, *, before: int | None = None, limit: int) -> Page[AuditEntry]:
    """The team's entries, the newest first: those with numbers below ``before``."""
    query = select(AuditEntry).where(AuditEntry.team_id == team_id)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    return page_of(session.scalars(query.order_by(AuditEntry.id.desc()).limit(limit + 1)).all(), limit)

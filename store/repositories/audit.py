"""The audit log: who changed what, and which keys were refused. Entries never change, except for that count."""

from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from store.page import Page, page_of
from store.tables.audit import AuditEntry

REFUSED = "key.refused"
"""An invalid key of the team was used: with a wrong secret, revoked or expired."""


class Actor(Protocol):
    """The author of a change in a team: a caller, or the operator."""

    @property
    def team_id(self) -> str:
        """The team."""

    @property
    def key_id(self) -> str | None:
        """The key used; None for the operator."""

    @property
    def address(self) -> str | None:
        """The address of the request."""


@dataclass(frozen=True)
class Operator:
    """The operator of the service, on its command line."""

    team_id: str
    key_id: None = None
    address: None = None


def note(session: Session, actor: Actor, action: str, *object_ids: str) -> None:
    """Record this transaction's action on each of these objects; the record commits with it."""
    who = {"team_id": actor.team_id, "key_id": actor.key_id, "address": actor.address, "action": action}
    if object_ids:
        session.execute(insert(AuditEntry).values([who | {"object_id": object_id} for object_id in object_ids]))


def count_refusal(session: Session, team_id: str, key_id: str, address: str | None) -> None:
    """Record that a key was refused. There is one entry per key and hour, with the latest address."""
    hour = func.date_trunc("hour", func.clock_timestamp())
    entry = {"team_id": team_id, "key_id": key_id, "action": REFUSED, "address": address, "hour": hour}
    counted = (
        insert(AuditEntry)
        .values(entry)
        .on_conflict_do_update(
            index_elements=["key_id", "action", "hour"], set_={"times": AuditEntry.times + 1, "address": address}
        )
    )
    session.execute(counted)


def entries_before(session: Session, team_id: str, *, before: int | None = None, limit: int) -> Page[AuditEntry]:
    """The team's entries, the newest first: those with numbers below ``before``."""
    query = select(AuditEntry).where(AuditEntry.team_id == team_id)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    return page_of(session.scalars(query.order_by(AuditEntry.id.desc()).limit(limit + 1)).all(), limit)

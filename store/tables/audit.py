"""Who did what: a row for each action of a key or the operator, and one per hour for what is counted. Rows form a chain."""

from datetime import datetime

from sqlalchemy import ForeignKey, Identity, Index, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, CreatedAt

REFUSED = "key.refused"
"""An invalid key of the team was used: with a wrong secret, revoked or expired."""
IS_REFUSED, IS_COUNTED = text(f"link IS NULL AND action = '{REFUSED}'"), text("link IS NULL AND hour IS NOT NULL")


class AuditEntry(Base):
    """One action, or all that is counted together in an hour. It never changes once it is in the chain."""

    __tablename__ = "audit"
    __table_args__ = (
        Index("ix_audit_team_id_id", "team_id", "id"),
        Index("ix_audit_refused", "key_id", "hour", unique=True, postgresql_where=IS_REFUSED),
        Index(
            "ix_audit_counted",
            *("key_id", "action", "object_id", "address", "hour"),
            unique=True,
            postgresql_where=IS_COUNTED,
        ),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"))
    key_id: Mapped[str | None]
    """The key that did it; null for the operator on the command line."""
    action: Mapped[str]
    """What was done, for example ``job.cancel``."""
    object_id: Mapped[str | None]
    """What it was done to."""
    address: Mapped[str | None]
    """Where the request came from; null for the operator."""
    times: Mapped[int] = mapped_column(server_default=text("1"))
    """Number of times within the hour."""
    hour: Mapped[datetime | None]
    """The hour that is counted; null for actions, which get a row each."""
    created_at: Mapped[CreatedAt]
    link: Mapped[int | None] = mapped_column(unique=True)
    """Its place in the chain, from 1 on; null until a worker has chained it, here and below."""
    previous: Mapped[bytes | None] = mapped_column(LargeBinary)
    """SHA-256 of the entry before it in the chain; 32 zero bytes for the first."""
    sha256: Mapped[bytes | None] = mapped_column(LargeBinary)
    """SHA-256 of ``previous`` and its own content."""

"""Who changed what: a row for each change by a key or the operator, and one per hour for each refused key."""

from datetime import datetime

from sqlalchemy import ForeignKey, Identity, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, CreatedAt


class AuditEntry(Base):
    """One action, or the attempts with one invalid key."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_team_id_id", "team_id", "id"), UniqueConstraint("key_id", "action", "hour"))

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

"""Who changed what: a row for each change that a key or the operator made, and one an hour for a key that was refused."""

from datetime import datetime

from sqlalchemy import ForeignKey, Identity, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, CreatedAt


class AuditEntry(Base):
    """One thing that was done, or that was tried with a key that is not valid."""

    __tablename__ = "audit"
    __table_args__ = (
        Index("ix_audit_team_id_id", "team_id", "id"),
        UniqueConstraint("key_id", "action", "hour"),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"))
    key_id: Mapped[str | None]
    """Who did it; null is the operator, on the command line."""
    action: Mapped[str]
    """What was done, for example ``job.cancel``."""
    object_id: Mapped[str | None]
    """What it was done to."""
    address: Mapped[str | None]
    """Where the request came from; null for the operator."""
    times: Mapped[int] = mapped_column(server_default=text("1"))
    """How often, within the hour."""
    hour: Mapped[datetime | None]
    """Which hour is counted; null for what is not counted but noted each time, which is never the same twice."""
    created_at: Mapped[CreatedAt]

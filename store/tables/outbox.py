"""Messages still to be sent. A row commits with its job, so only existing jobs are announced and none is forgotten."""

from datetime import datetime

from sqlalchemy import ForeignKey, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, CreatedAt


class OutboxMessage(Base):
    """A wake-up message for a waiting job, to be sent to the broker."""

    __tablename__ = "outbox"
    __table_args__ = (Index("ix_outbox_unsent", "id", postgresql_where=text("sent_at IS NULL")),)

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[CreatedAt]
    sent_at: Mapped[datetime | None]

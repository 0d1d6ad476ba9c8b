"""What happened to a job, numbered from 1 without gaps, written in the transaction that did it."""

from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, CreatedAt


class Event(Base):
    """One thing that happened to a job."""

    __tablename__ = "events"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    type: Mapped[str]
    data: Mapped[dict[str, Any]]
    created_at: Mapped[CreatedAt]

"""Webhooks of a team: the secrets that sign them, and each message to be delivered.

A message is written in the transaction of its event, so every message has an event and none is forgotten. The sender counts
an attempt first, so that a receiver that crashes its sender is not tried forever.
"""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, LargeBinary, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from axformer.wire.webhooks import DeliveryState
from store.tables.base import Base, CreatedAt, text_enum


class WebhookSecret(Base):
    """The salt of a team's secret; the service's own key, which is not in the database, completes it."""

    __tablename__ = "webhook_secrets"

    id: Mapped[str] = mapped_column(primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), index=True)
    salt: Mapped[bytes] = mapped_column(LargeBinary)
    key_fingerprint: Mapped[str]
    """Fingerprint of the service's key that it was derived with; another key would give another secret."""
    sealed: Mapped[bytes | None] = mapped_column(LargeBinary)
    """The secret itself, encrypted, where it outlives the key that it was derived with; else null."""
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime | None]
    """When it stops signing; null for the newest."""


class Delivery(Base):
    """One event of a job on its way to the address that the job names."""

    __tablename__ = "deliveries"
    __table_args__ = (
        UniqueConstraint("id"),
        Index("ix_deliveries_due", "next_at", postgresql_where=text("state = 'pending'")),
        Index("ix_deliveries_sending", "url", postgresql_where=text("sending_until IS NOT NULL")),
    )

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Number of the event."""
    id: Mapped[str]
    """The ``webhook-id``; the same in every attempt, so that receivers recognise repeated messages."""
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"))
    type: Mapped[str]
    url: Mapped[str]
    body: Mapped[str]
    """The exact JSON text that is signed and sent."""
    state: Mapped[DeliveryState] = mapped_column(text_enum(DeliveryState, "state"))
    attempts: Mapped[int]
    """Times it was sent since it was written, or since it was last sent again by hand."""
    next_at: Mapped[datetime]
    """Of a pending one: when it is sent next, at the earliest."""
    sending_until: Mapped[datetime | None]
    """While somebody is sending it: how long he may take before it is anybody's again."""
    last_status: Mapped[int | None]
    """HTTP status of the last attempt; null where there was no answer."""
    last_error: Mapped[str | None]
    """Why the last attempt failed; null where it did not."""
    attempted_at: Mapped[datetime | None]
    created_at: Mapped[CreatedAt]

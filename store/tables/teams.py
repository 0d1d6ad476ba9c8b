"""Teams, which own everything, and their keys. Only the hash of a key's secret is stored."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Double, ForeignKey, LargeBinary, func, text
from sqlalchemy.orm import Mapped, mapped_column

from axformer.wire.scopes import Scope
from store.tables.base import Base, CreatedAt, text_enum


class Team(Base):
    """A group of people that shares jobs, uploads and keys."""

    __tablename__ = "teams"
    __table_args__ = (
        CheckConstraint("running_limit >= 0 AND queued_limit >= 0 AND stored_bytes_limit >= 0", name="limits"),
        CheckConstraint("seconds_limit > 0", name="seconds_limit"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[CreatedAt]
    running_limit: Mapped[int | None]
    """Most jobs that workers hold at a time; null means no limit, here and below."""
    queued_limit: Mapped[int | None]
    """Most queued jobs."""
    stored_bytes_limit: Mapped[int | None]
    """Most bytes of uploads and artifacts."""
    seconds_limit: Mapped[int | None]
    """Most seconds for which workers hold one job."""
    grants: Mapped[list[str]] = mapped_column(server_default=text("'[]'"))
    """What workers read for the team with the operator's credentials: ``s3://BUCKET``, ``hf://OWNER``; ``*`` for all."""
    used_seconds: Mapped[float] = mapped_column(Double, server_default=text("0"))
    """Worker time of ended turns, decayed by the half-life up to ``used_as_of``."""
    used_as_of: Mapped[datetime] = mapped_column(server_default=func.now())


class ApiKey(Base):
    """One key of a team, written ``axk_<id>_<secret>``."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(primary_key=True)
    """The part of the key that may be shown."""
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    secret_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    """SHA-256 of the secret; a fast hash is right for 256 random bits."""
    scope: Mapped[Scope] = mapped_column(text_enum(Scope, "scope"))
    """The most that it allows."""
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime | None]
    """When the key expires; null for never."""
    replaced_by: Mapped[str | None]
    """The key that replaced it."""
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class EndedSession(Base):
    """A session of the pages that was ended by signing out; its cookie opens nothing any more."""

    __tablename__ = "ended_sessions"

    id: Mapped[str] = mapped_column(primary_key=True)
    until: Mapped[datetime]
    """When the cookie is too old anyway."""

"""Teams, who own everything, and the keys they come with. Of a key's secret only the hash is kept."""

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, CreatedAt


class Team(Base):
    """A group of people that shares jobs, uploads and keys."""

    __tablename__ = "teams"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[CreatedAt]


class ApiKey(Base):
    """One key of a team, written ``axk_<id>_<secret>``."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(primary_key=True)
    """The part of the key that may be shown."""
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    secret_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    """SHA-256 of the secret; a fast hash is right for 256 random bits."""
    created_at: Mapped[CreatedAt]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]

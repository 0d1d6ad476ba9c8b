"""Tables of files: what jobs have made, and what teams have uploaded."""

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, CreatedAt


class Artifact(Base):
    """One file of a finished job."""

    __tablename__ = "artifacts"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    """Path inside the artifact with forward slashes, for example ``model/config.json``."""
    sha256: Mapped[str]
    """Hexadecimal."""
    bytes: Mapped[int]
    media_type: Mapped[str]
    created_at: Mapped[CreatedAt]


class Upload(Base):
    """One file sent by a team."""

    __tablename__ = "uploads"

    id: Mapped[str] = mapped_column(primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id"), index=True)
    filename: Mapped[str]
    sha256: Mapped[str]
    """Hexadecimal."""
    bytes: Mapped[int]
    created_at: Mapped[CreatedAt]

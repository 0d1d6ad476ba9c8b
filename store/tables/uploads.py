"""Files that a team has sent, to be named in jobs as ``upload:<id>``."""

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, CreatedAt


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

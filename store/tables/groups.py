"""Groups: the jobs of one experiment, posted together."""

from typing import Any

from sqlalchemy import ForeignKey, LargeBinary, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, CreatedAt


class Group(Base):
    """A grid whose cells are jobs of a team. It lasts as long as one of them."""

    __tablename__ = "groups"
    __table_args__ = (UniqueConstraint("team_id", "idempotency_key"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id"))
    name: Mapped[str]
    grid: Mapped[dict[str, Any]]
    """``sets`` and ``settings``: their names in the order in which they were posted."""
    idempotency_key: Mapped[str | None]
    body_sha256: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Hash of the request that carried the idempotency key."""
    created_at: Mapped[CreatedAt]

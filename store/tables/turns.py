"""Turns: for how long a worker has held a job. Whoever ends a lease writes one, and the next claim adds it to the team's
account (``teams.used_seconds``). So the end of a lease waits for no row that others write."""

from datetime import datetime

from sqlalchemy import Double, ForeignKey, Identity
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base


class Turn(Base):
    """One lease that has ended, or was lost, and is not in its team's account yet."""

    __tablename__ = "turns"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"))
    seconds: Mapped[float] = mapped_column(Double)
    ended_at: Mapped[datetime]

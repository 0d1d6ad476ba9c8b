"""Turns: how long a worker has held a job. The end of a lease writes one, and the next claim adds it to the team's account
(``teams.used_seconds``), so that the end of a lease never waits for a row that others write."""

from datetime import datetime

from sqlalchemy import Double, ForeignKey, Identity
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base


class Turn(Base):
    """One ended or lost lease that is not in its team's account yet."""

    __tablename__ = "turns"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"))
    seconds: Mapped[float] = mapped_column(Double)
    ended_at: Mapped[datetime]

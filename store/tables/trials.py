"""The trace: one row a trial, with the fields of ``axformer.plan.trial.Trial`` and no others."""

from sqlalchemy import Double, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base


class TrialRow(Base):
    """One trial of a job's pass."""

    __tablename__ = "trials"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    phase: Mapped[str]
    element: Mapped[str | None]
    loss: Mapped[float] = mapped_column(Double)
    loss_is_bound: Mapped[bool]
    loss_band: Mapped[float] = mapped_column(Double)
    helped: Mapped[int | None]
    samples: Mapped[int]
    total: Mapped[int]
    min_loss: Mapped[float] = mapped_column(Double)
    verdict: Mapped[str]
    precision: Mapped[str]
    parameters: Mapped[int]
    seconds: Mapped[float] = mapped_column(Double)

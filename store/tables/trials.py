"""The traces of jobs: one row per trial, with the fields of ``axformer.plan.trial.Trial``."""

from typing import Any

from sqlalchemy import Double, ForeignKey
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base


class TrialRow(Base):
    """One trial of a job."""

    __tablename__ = "trials"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    phase: Mapped[str]
    element: Mapped[str | None]
    loss: Mapped[float] = mapped_column(Double)
    loss_is_bound: Mapped[bool]
    helped: Mapped[int | None]
    samples: Mapped[int]
    total: Mapped[int]
    min_loss: Mapped[float] = mapped_column(Double)
    verdict: Mapped[str]
    precision: Mapped[str]
    parameters: Mapped[int]
    seconds: Mapped[float] = mapped_column(Double)
    plan: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB(none_as_null=True))
    """What is left, layer by layer, if the trial is of a whole plan."""
    milliseconds: Mapped[dict[str, list[float]] | None] = mapped_column(JSONB(none_as_null=True))
    """What blocks cost at each size, in the base trial of a run that chooses by latency."""
    figures: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Figures of the model, if the trial is of a whole plan; as text, since the first metric comes first."""
    levels: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB(none_as_null=True))
    """The level table, in the first trial that needed it."""

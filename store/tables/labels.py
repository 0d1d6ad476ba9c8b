"""Labels that people gave for changed answers of a finished job: one for each person and row."""

from sqlalchemy import ForeignKey
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from axformer.wire.answer_sheet import Answer
from store.tables.base import Base, CreatedAt


class RowLabel(Base):
    """One person's label of one row."""

    __tablename__ = "row_labels"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    row_id: Mapped[str] = mapped_column(primary_key=True)
    """The id of the row on the job's answer sheet."""
    key_id: Mapped[str] = mapped_column(primary_key=True)
    """The key that gave it, which stands for a person."""
    label: Mapped[Answer] = mapped_column(JSONB)
    given_at: Mapped[CreatedAt]
    """When it was given or last changed."""

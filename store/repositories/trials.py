"""The stored trace of a job, by page or as a whole."""

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from axformer.plan.trial import Trial
from store.page import Page, page_of
from store.tables.trials import TrialRow

_COLUMNS = tuple(getattr(TrialRow, name) for name in Trial.model_fields)
BEFORE_FIRST = -1
"""The number before that of the base trial."""


def trials_after(session: Session, job_id: str, *, after: int = BEFORE_FIRST, limit: int) -> Page[Trial]:
    """The job's trials with numbers above ``after``, in order."""
    query = select(*_COLUMNS).where(TrialRow.job_id == job_id, TrialRow.seq > after)
    rows = session.execute(query.order_by(TrialRow.seq).limit(limit + 1)).mappings()
    return page_of([Trial.model_validate(dict(row)) for row in rows], limit)


def all_trials(session: Session, job_id: str, *, chunk: int) -> Iterator[Trial]:
    """The trials of the job in order, read through a server-side cursor ``chunk`` rows at a time.

    The session must stay open while they are read.
    """
    query = select(*_COLUMNS).where(TrialRow.job_id == job_id).order_by(TrialRow.seq)
    for row in session.execute(query, execution_options={"yield_per": chunk}).mappings():
        yield Trial.model_validate(dict(row))

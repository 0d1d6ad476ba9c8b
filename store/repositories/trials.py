"""The stored trace of a job, by page or as a whole."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import insert, literal, select
from sqlalchemy.orm import Session

from axformer.plan.trial import Trial
from store.page import Page, page_of
from store.repositories.jobs import Created, NewJob, create_job
from store.tables.jobs import TrialRow

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


def create_export(session: Session, new: NewJob, progress: Mapping[str, Any]) -> Created:
    """Create a queued job with the trials of ``new.exported_from`` up to ``new.upto``, or find the one of the same key.

    Args:
        progress: progress of the original job; it holds the digests of that job's inputs.
    """
    created = create_job(session, new)
    if created.is_new:
        trials = select(literal(created.job.id), *_COLUMNS)
        trials = trials.where(TrialRow.job_id == new.exported_from, TrialRow.seq <= new.upto)
        session.execute(insert(TrialRow).from_select(["job_id", *Trial.model_fields], trials))
        created.job.progress = dict(progress)
        session.flush()
    return created

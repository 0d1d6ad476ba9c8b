"""The stored traces of a job, by page or as a whole."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, insert, literal, select
from sqlalchemy.orm import Session

from axformer.plan.trial import Trial
from store.page import Page, page_of
from store.repositories.jobs import Created, NewJob, create_job
from store.tables.jobs import Job
from store.tables.trials import FIRST_PASS, TrialRow

_COLUMNS = tuple(getattr(TrialRow, name) for name in Trial.model_fields)
BEFORE_FIRST = -1
"""The number before that of the base trial."""


def shown_trials(job_id: str | None, pass_number: int | None = None) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Whether a trial row belongs to this pass of the job; None for the pass that is shown (``jobs.shown_pass``)."""
    shown = select(Job.shown_pass).where(Job.id == job_id).scalar_subquery()
    return TrialRow.job_id == job_id, TrialRow.pass_number == (shown if pass_number is None else pass_number)


def trials_after(
    session: Session, job_id: str, *, after: int = BEFORE_FIRST, limit: int, pass_number: int | None = None
) -> Page[Trial]:
    """The job's trials with numbers above ``after``, in order, of the pass that is shown or of another."""
    query = select(*_COLUMNS).where(*shown_trials(job_id, pass_number), TrialRow.seq > after)
    rows = session.execute(query.order_by(TrialRow.seq).limit(limit + 1)).mappings()
    return page_of([Trial.model_validate(dict(row)) for row in rows], limit)


def all_trials(session: Session, job_id: str, *, chunk: int) -> Iterator[Trial]:
    """The trials of all passes of the job, pass by pass, read through a server-side cursor ``chunk`` rows at a time.

    The session must stay open while they are read.
    """
    query = select(*_COLUMNS).where(TrialRow.job_id == job_id).order_by(TrialRow.pass_number, TrialRow.seq)
    for row in session.execute(query, execution_options={"yield_per": chunk}).mappings():
        yield Trial.model_validate(dict(row))


def create_export(session: Session, new: NewJob, progress: Mapping[str, Any]) -> Created:
    """Create a queued job with the trials of ``new.exported_from`` up to ``new.upto``, or find the one of the same key.

    Args:
        progress: progress of the original job; it holds the digests of that job's inputs.
    """
    created = create_job(session, new)
    if created.is_new:
        columns = [getattr(TrialRow, name) for name in Trial.model_fields]
        trials = select(literal(created.job.id), literal(FIRST_PASS), *columns)
        trials = trials.where(*shown_trials(new.exported_from), TrialRow.seq <= new.upto)
        session.execute(insert(TrialRow).from_select(["job_id", "pass_number", *Trial.model_fields], trials))
        created.job.progress = dict(progress)
        session.flush()
    return created

"""Exports: jobs that write a model on another job's path, from that job's trace and without a pass."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert, literal, select
from sqlalchemy.orm import Session

from axformer.plan.trial import Trial
from store.repositories.jobs import Created, NewJob, create_job
from store.tables.trials import TrialRow


def create_export(session: Session, new: NewJob, progress: Mapping[str, Any]) -> Created:
    """Create a queued job with the trials of ``new.exported_from`` up to ``new.upto``, or find the one of the same key.

    Args:
        progress: progress of the original job; it holds the digests of that job's inputs.
    """
    created = create_job(session, new)
    if created.is_new:
        columns = [getattr(TrialRow, name) for name in Trial.model_fields]
        trials = select(literal(created.job.id), *columns)
        trials = trials.where(TrialRow.job_id == new.exported_from, TrialRow.seq <= new.upto)
        session.execute(insert(TrialRow).from_select(["job_id", *Trial.model_fields], trials))
        created.job.progress = dict(progress)
        session.flush()
    return created

"""What run times of jobs are compared by: the work that a job is."""

from sqlalchemy import Text, case, cast, func

from axformer.config import DEFAULT_METHOD
from axformer.wire.kinds import JobKind
from store.tables.jobs import Job

WORK = case(
    (Job.kind != JobKind.PASS, cast(Job.kind, Text)),
    else_=func.coalesce(Job.spec["config"]["method"].astext, DEFAULT_METHOD),
).label("work")
""":func:`work_of` in SQL."""


def work_of(job: Job) -> str:
    """What a job is: the method of a run, otherwise its kind."""
    return str(job.config.get("method", DEFAULT_METHOD)) if job.kind == JobKind.PASS else str(job.kind)

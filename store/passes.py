"""What run times of jobs are compared by: the work that a job is, and its number of passes."""

from sqlalchemy import Text, case, cast, func

from axformer.config import DEFAULT_METHOD, Order
from axformer.methods.axformer.orders import SEARCHED_ORDERS
from axformer.wire.kinds import JobKind
from store.tables.jobs import Job

PASSES = case((Job.spec["config"]["order"].astext == Order.SEARCH.value, len(SEARCHED_ORDERS)), else_=1).label("passes")
""":func:`pass_count` in SQL."""
WORK = case(
    (Job.kind != JobKind.PASS, cast(Job.kind, Text)),
    else_=func.coalesce(Job.spec["config"]["method"].astext, DEFAULT_METHOD),
).label("work")
""":func:`work_of` in SQL."""


def pass_count(job: Job) -> int:
    """Passes of a job: one, or with ``order=search`` one for each order."""
    return len(SEARCHED_ORDERS) if job.config.get("order") == Order.SEARCH else 1


def work_of(job: Job) -> str:
    """What a job is: the method of a run, otherwise its kind."""
    return str(job.config.get("method", DEFAULT_METHOD)) if job.kind == JobKind.PASS else str(job.kind)

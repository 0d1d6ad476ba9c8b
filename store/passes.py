"""The number of passes of a job; run times of jobs are compared per pass."""

from sqlalchemy import case

from axformer.config import Order
from axformer.methods.axformer.orders import SEARCHED_ORDERS
from store.tables.jobs import Job

PASSES = case((Job.config["order"].astext == Order.SEARCH.value, len(SEARCHED_ORDERS)), else_=1).label("passes")
""":func:`pass_count` in SQL."""


def pass_count(job: Job) -> int:
    """Passes of a job: one, or with ``order=search`` one for each order."""
    return len(SEARCHED_ORDERS) if job.config.get("order") == Order.SEARCH else 1

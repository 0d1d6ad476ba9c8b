"""The passes of a search of orders (``order=search``): jobs of their own below a parent, so that several workers run them.

Passes publish nothing. The parent waits: it is claimed when all have succeeded, to publish the best of them. When one has
failed, or the parent is to be cancelled, the others are cancelled and the parent ends after them. It is paused after them
too. A pass that ends does not touch its parent: whoever claims next looks at both. Both are locked parent first, and a claim
of a pass waits for no parent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, and_, exists, or_, select
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.elements import ColumnElement

from axformer.config import Order
from axformer.methods.axformer.orders import SEARCHED_ORDERS
from store.errors import IllegalTransitionError
from store.ids import JOB_PREFIX, new_ids
from store.repositories.events import record_creation
from store.states import TERMINAL, WORKING, JobState
from store.tables.jobs import Job

_Pass = aliased(Job)
_AS_PARENT = (
    "team_id",
    "checkpoint",
    "validation",
    "test",
    "preset",
    "priority",
    "device",
    "forms",
    "labels",
    "hub_token",
    "max_attempts",
    "created_at",
    "waits_since",
)
IS_SEARCH = Job.config["order"].astext.is_not_distinct_from(Order.SEARCH.value)
"""Whether a job is the parent of passes."""


def is_search(job: Job) -> bool:
    """Whether the job is the parent of passes."""
    return bool(job.config.get("order") == Order.SEARCH)


def add_passes(session: Session, *parents: Job) -> None:
    """Queue a job for each order below parents that are new or locked. A parent's message speaks for them too."""
    passes = [one for parent in parents for one in _passes_below(parent)]
    session.add_all(passes)
    session.flush()
    record_creation(session, passes)


def _passes_below(parent: Job) -> list[Job]:
    shared = {name: getattr(parent, name) for name in _AS_PARENT}
    return [
        Job(
            **shared,
            id=job_id,
            parent_id=parent.id,
            name=f"{parent.name}: {order}",
            state=JobState.QUEUED,
            config=parent.config | {"order": order.value},
            attempt=0,
            fence=0,
            event_count=0,
        )
        for order, job_id in zip(SEARCHED_ORDERS, new_ids(JOB_PREFIX, len(SEARCHED_ORDERS)), strict=True)
    ]


def passes_of(session: Session, parent_ids: Sequence[str]) -> dict[str, list[Job]]:
    """The passes of each of these jobs that has any, in the order of ``SEARCHED_ORDERS``."""
    found: dict[str, list[Job]] = {}
    for one in session.scalars(select(Job).where(Job.parent_id.in_(parent_ids))):
        found.setdefault(str(one.parent_id), []).append(one)
    return {parent: sorted(passes, key=_place) for parent, passes in found.items()}


def lock_passes(session: Session, parent: Job) -> list[Job]:
    """The passes of a locked parent as they are now, locked until the transaction ends."""
    query = select(Job).where(Job.parent_id == parent.id).order_by(Job.id).with_for_update(key_share=True)
    return sorted(session.scalars(query.execution_options(populate_existing=True)), key=_place)


def remove_passes(session: Session, parent: Job) -> None:
    """Delete the passes of a locked parent with every row of theirs; they have no artifacts.

    Raises:
        IllegalTransitionError: a worker has one of them still.
    """
    for one in lock_passes(session, parent):
        if one.state not in TERMINAL:
            raise IllegalTransitionError(f"its pass {one.id} is still {one.state}; wait for the end of the pass")
        session.delete(one)
    session.flush()


def is_ready() -> ColumnElement[bool]:
    """Whether a job need not wait for passes: there are none, all have ended or are paused, which they are with their parent
    only, or one has failed and others run on."""
    # The first leads to the index of the few passes.
    mine = and_(_Pass.parent_id.is_not(None), _Pass.parent_id == Job.id)
    unfinished = exists().where(mine, _Pass.state.not_in(TERMINAL | {JobState.PAUSED}))
    running_on = exists().where(mine, _Pass.state.in_(WORKING | {JobState.QUEUED}))
    return or_(~unfinished, and_(has_failed_pass(), running_on))


def has_failed_pass() -> ColumnElement[bool]:
    """Whether a job is the parent of a pass that has failed."""
    return exists().where(_Pass.parent_id.is_not(None), _Pass.parent_id == Job.id, _Pass.state == JobState.FAILED)


def parents_of_failed_passes() -> Select[str | None]:
    """The ids of all jobs of which ``has_failed_pass`` is true."""
    return select(_Pass.parent_id).where(_Pass.parent_id.is_not(None), _Pass.state == JobState.FAILED)


def error_of(failed: Job) -> Mapping[str, Any]:
    """The error of a parent whose pass has failed."""
    error = failed.error or {}
    return {**error, "message": f"its pass {failed.id} ({failed.config['order']}) failed: {error.get('message')}"}


def _place(one: Job) -> int:
    return SEARCHED_ORDERS.index(Order(one.config["order"]))

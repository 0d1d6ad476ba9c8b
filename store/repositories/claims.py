"""How a worker gets a job. A claim gives a lease and a fence number, with which the worker writes (``leases.py``)."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import CompoundSelect, Select, and_, exists, func, or_, select, union_all
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.elements import ColumnElement

from store import locks
from store.abilities import ALL, Abilities
from store.repositories.failures import end_if_spent, fail
from store.repositories.leases import lease_end
from store.repositories.line import DEFAULT_RULES, Rules, fits, is_held_back, is_lost_or_free, is_waiting, the_line
from store.repositories.moves import begin_search, move_job
from store.repositories.passes import (
    error_of,
    has_failed_pass,
    is_ready,
    is_search,
    lock_passes,
    parents_of_failed_passes,
)
from store.repositories.steering import cancel_passes
from store.repositories.turns import end_turn, settle_turns
from store.states import ACTIVE, WORKING, JobState
from store.tables.jobs import Job

_Lost = aliased(Job)
_NOW = func.statement_timestamp()
_CANDIDATES = 16
"""Jobs at the head of the line that are tried. One is passed over only in the moment in which its owner changes it."""


def claim_next(
    session: Session, worker: str, lease_seconds: float, *, able: Abilities = ALL, rules: Rules = DEFAULT_RULES
) -> Job | None:
    """Take the first job in the line that a worker with these abilities can take: queued, or left by one that was lost.

    The job is in state ``fetching``, with a new fence number. One that was running before keeps its trace, to be
    resumed. On the way, jobs whose lease ran out while they were being cancelled end as cancelled, those out of attempts
    as failed, and searches of orders after a pass that failed or was cancelled. Null where there is nothing to do.
    Claims wait for each other until the transaction ends, some ten milliseconds each where 2,000 jobs wait: two at the
    same time would each find the same team first, and could take one job more than it may run.
    """
    session.execute(select(func.pg_advisory_xact_lock(locks.CLAIMS)))
    settle_turns(session, rules)
    while (spent := session.scalars(_locked(_must_end()).limit(1)).one_or_none()) is not None:
        if not end_if_spent(session, spent):
            _end_with_its_pass(session, spent)
    for job_id in head_of_line(session, able, rules, _CANDIDATES):
        job = session.scalars(_locked(and_(Job.id == job_id, is_waiting()))).one_or_none()
        if job is not None:
            _begin(session, job, worker, lease_seconds)
            return job
    return None


def head_of_line(session: Session, able: Abilities, rules: Rules, most: int) -> Sequence[str]:
    """The ids of the first jobs that ``claim_next`` would take, in its order."""
    line = the_line(rules, able, most)
    return session.scalars(select(line.c.id).where(~line.c.held_back).order_by(line.c.place).limit(most)).all()


def is_anything_claimable(session: Session, able: Abilities = ALL, *, beside: Job | None = None) -> bool:
    """Whether there is a job that ``claim_next`` would take or end, apart from one and the passes of the same search.

    Of the team of that one there may be jobs that its limit holds back only until that one yields.
    """
    may_run = ~is_held_back()
    if beside is not None:
        may_run = and_(or_(may_run, Job.team_id == beside.team_id), Job.id != beside.id)
        if beside.parent_id is not None:
            may_run = and_(may_run, Job.parent_id.is_distinct_from(beside.parent_id))
    waiting = select(Job.id).where(is_waiting(), fits(able), may_run)
    return session.scalars(select(or_(exists().where(_must_end()), exists(waiting)))).one()


@cache
def _must_end() -> ColumnElement[bool]:
    """Whether a job is to be ended and not begun: asked for or out of attempts while no worker has it, or by its passes."""
    is_lost = and_(Job.state.in_(ACTIVE), is_lost_or_free())
    is_spent = or_(Job.state.not_in(WORKING), Job.attempt >= Job.max_attempts)
    is_barred = and_(or_(Job.state == JobState.QUEUED, is_lost), has_failed_pass())
    # These few are all that can be meant; without them PostgreSQL would look at every queued job.
    lost = select(_Lost.id).where(_Lost.state.in_(ACTIVE), or_(_Lost.lease_until.is_(None), _Lost.lease_until < _NOW))
    few: CompoundSelect[Any] = union_all(lost, parents_of_failed_passes())
    return and_(Job.id.in_(few), or_(and_(is_lost, is_spent), is_barred), is_ready())


def _locked(condition: ColumnElement[bool]) -> Select[Job]:
    query = select(Job).where(condition).with_for_update(skip_locked=True, key_share=True)
    return query.execution_options(populate_existing=True)


def _end_with_its_pass(session: Session, job: Job) -> None:
    """Deal with a search one of whose passes has failed: cancel the others, and fail when they have all ended."""
    failed = next(one for one in lock_passes(session, job) if one.state is JobState.FAILED)
    begin_search(session, job)
    if not cancel_passes(session, job):
        fail(session, job, error_of(failed))


def _begin(session: Session, job: Job, worker: str, lease_seconds: float) -> None:
    end_turn(session, job)
    job.attempt += 1
    job.fence += 1
    job.worker = worker
    job.claimed_at = func.clock_timestamp()
    job.lease_until = lease_end(lease_seconds)
    if job.started_at is None or not is_search(job):
        job.started_at = func.clock_timestamp()
    move_job(session, job, JobState.FETCHING, data={"attempt": job.attempt, "worker": worker})
    if job.parent_id is not None:
        _begin_parent(session, job.parent_id)


def _begin_parent(session: Session, parent_id: str) -> None:
    """Let a search run with its first pass. One that is locked, which may be by someone who waits for this pass, is left."""
    query = select(Job).where(Job.id == parent_id).with_for_update(skip_locked=True, key_share=True)
    parent = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if parent is not None:
        begin_search(session, parent)

"""Claiming jobs. A claim gives the worker a lease and a fence number to write with (``leases.py``)."""

from collections.abc import Sequence
from functools import cache

from sqlalchemy import Select, and_, exists, func, or_, select
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from store import locks
from store.repositories.leases import lease_end, lock_wanted, release
from store.repositories.line import (
    ALL,
    DEFAULT_RULES,
    Abilities,
    Rules,
    end_turn,
    fits,
    is_held_back,
    is_lost,
    is_waiting,
    settle_turns,
    the_line,
)
from store.repositories.moves import end_if_spent, move_job
from store.states import ACTIVE, WORKING, JobState
from store.tables.jobs import Job

_CANDIDATES = 16
"""Jobs at the head of the line that are tried. One is skipped only while its owner is changing it."""


def claim_next(
    session: Session, worker: str, lease_seconds: float, *, able: Abilities = ALL, rules: Rules = DEFAULT_RULES
) -> Job | None:
    """Take the first job in the line that a worker with these abilities can take: queued, or left by one that was lost.

    The job is in state ``fetching``, with a new fence number. If it ran before, it keeps its trace and is resumed. Jobs
    whose lease expired while they were being cancelled are ended as cancelled on the way, and jobs out of attempts as
    failed. Returns None if there is nothing to do.
    Claims wait for each other until the transaction ends, some ten milliseconds each with 2,000 waiting jobs: two concurrent
    claims would find the same team first, and could exceed its limit of running jobs by one.
    """
    session.execute(select(func.pg_advisory_xact_lock(locks.CLAIMS)))
    settle_turns(session, rules)
    while (spent := session.scalars(_locked(_must_end()).limit(1)).one_or_none()) is not None:
        end_if_spent(session, spent)
    for job_id in head_of_line(session, able, rules, _CANDIDATES):
        job = session.scalars(_locked(and_(Job.id == job_id, is_waiting()))).one_or_none()
        if job is not None:
            _begin(session, job, worker, lease_seconds)
            job.machine = able.machine
            return job
    return None


def head_of_line(session: Session, able: Abilities, rules: Rules, most: int) -> Sequence[str]:
    """The ids of the first jobs that ``claim_next`` would take, in its order."""
    line = the_line(rules, able, most)
    return session.scalars(select(line.c.id).where(~line.c.held_back).order_by(line.c.place).limit(most)).all()


def is_anything_claimable(session: Session, able: Abilities = ALL, *, beside: Job | None = None) -> bool:
    """Whether there is a job, other than an excepted one, that ``claim_next`` would take or end.

    This includes jobs of the excepted job's team that its limit holds back only until that job yields.
    """
    may_run = ~is_held_back()
    if beside is not None:
        may_run = and_(or_(may_run, Job.team_id == beside.team_id), Job.id != beside.id)
    waiting = select(Job.id).where(is_waiting(), fits(able), may_run)
    return session.scalars(select(or_(exists().where(_must_end()), exists(waiting)))).one()


@cache
def _must_end() -> ColumnElement[bool]:
    """Whether a job must be ended, not claimed: its worker was lost, and its end was requested or no attempts are left."""
    is_spent = or_(Job.state.not_in(WORKING), Job.attempt >= Job.max_attempts)
    return and_(Job.state.in_(ACTIVE), is_lost(), is_spent)


def _locked(condition: ColumnElement[bool]) -> Select[Job]:
    query = select(Job).where(condition).with_for_update(skip_locked=True, key_share=True)
    return query.execution_options(populate_existing=True)


def _begin(session: Session, job: Job, worker: str, lease_seconds: float) -> None:
    end_turn(session, job)
    job.attempt += 1
    job.fence += 1
    job.worker = worker
    job.claimed_at = func.clock_timestamp()
    job.lease_until = lease_end(lease_seconds)
    job.started_at = func.clock_timestamp()
    move_job(session, job, JobState.FETCHING, data={"attempt": job.attempt, "worker": worker})


def may_others_go_first(session: Session, job_id: str, *, able: Abilities = ALL) -> bool:
    """Whether any job might go before a running one; a cheap check without locks."""
    job = session.get(Job, job_id)
    return job is not None and is_anything_claimable(session, able, beside=job)


def yield_to_others(
    session: Session,
    job_id: str,
    fence: int,
    reason: str,
    *,
    counts: bool = False,
    able: Abilities = ALL,
    rules: Rules = DEFAULT_RULES,
) -> int | None:
    """Queue a running job again with its trace if another would then be claimed before it.

    The order of claims itself decides: the job is queued, and taken back if it would be the next.

    Args:
        counts: whether the attempt counts; the caller sees to it that another one is left.

    Returns:
        The fence that the job waits with, one below that of its next claim; None if nothing has changed.

    Raises:
        LeaseLostError: the job is no longer the caller's.
        CancelRequestedError: the owner has cancelled it.
        PauseRequestedError: the owner has paused it.
    """
    job = lock_wanted(session, job_id, fence)
    if not is_anything_claimable(session, able, beside=job):
        return None
    attempt = session.begin_nested()
    job.waits_since = func.clock_timestamp()
    waiting = release(session, job_id, fence, reason).fence
    job.attempt += counts
    if head_of_line(session, able, rules, 1) in ([], [job_id]):
        attempt.rollback()
        return None
    attempt.commit()
    return waiting

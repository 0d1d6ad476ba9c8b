"""Time slices: a job that has run for a while yields to waiting jobs."""

from sqlalchemy import func
from sqlalchemy.orm import Session

from store.abilities import ALL, Abilities
from store.repositories.claims import head_of_line, is_anything_claimable
from store.repositories.leases import lock_wanted, release
from store.repositories.line import DEFAULT_RULES, Rules
from store.tables.jobs import Job


def may_others_go_first(session: Session, job_id: str, *, able: Abilities = ALL) -> bool:
    """Whether any job might go before a running one; a cheap check without locks."""
    job = session.get(Job, job_id)
    return job is not None and is_anything_claimable(session, able, beside=job)


def yield_to_others(
    session: Session, job_id: str, fence: int, reason: str, *, able: Abilities = ALL, rules: Rules = DEFAULT_RULES
) -> int | None:
    """Queue a running job again with its trace if another would then be claimed before it; the attempt does not count.

    The order of claims itself decides: the job is queued, and taken back if it would be the next.

    Args:
        able: the abilities of the worker.
        rules: parameters of the line, as in ``claim_next``.

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
    if head_of_line(session, able, rules, 1) in ([], [job_id]):
        attempt.rollback()
        return None
    attempt.commit()
    return waiting

"""Time slices: a job that has run for a while lets those go first that wait."""

from sqlalchemy import func
from sqlalchemy.orm import Session

from store.abilities import ALL, Abilities
from store.repositories.claims import head_of_line, is_anything_claimable
from store.repositories.leases import lock_wanted, release
from store.repositories.line import DEFAULT_RULES, Rules
from store.tables.jobs import Job


def may_others_go_first(session: Session, job_id: str, *, able: Abilities = ALL) -> bool:
    """Whether it makes sense to ask who would go before a running job; nothing is locked for this."""
    job = session.get(Job, job_id)
    return job is not None and is_anything_claimable(session, able, beside=job)


def yield_to_others(
    session: Session, job_id: str, fence: int, reason: str, *, able: Abilities = ALL, rules: Rules = DEFAULT_RULES
) -> int | None:
    """Queue a running job again, with its trace, if another would then be claimed before it; the attempt does not count.

    Who would be claimed is asked of the order of claims itself: the job is queued, and taken back if it were the next.

    Args:
        able: what the worker can take on, and
        rules: of the line, as in ``claim_next``.

    Returns:
        The fence that the job waits with, one below that of its next claim; None if nothing has changed.

    Raises:
        LeaseLostError: the job is no longer the caller's.
        CancelRequestedError: its owner wants it cancelled.
        PauseRequestedError: its owner wants it paused.
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

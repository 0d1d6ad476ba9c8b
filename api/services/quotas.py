"""Refuse what would exceed a team's limits, with the figures. Jobs above the limit of running jobs stay queued instead."""

from sqlalchemy.orm import Session

from api.errors import LimitReachedError, WrongStateError
from store.repositories.teams import limits_of, lock_limits, queued_jobs, stored_bytes

QUEUED_CODE = "queued_limit"
STORED_CODE = "stored_bytes_limit"
_RETRY_AFTER = {"Retry-After": "60"}
"""Seconds; a short job takes about a minute, and its end lets the next one in."""


def check_queued(session: Session, team_id: str) -> None:
    """Check a team's limit of queued jobs, including the one just added, and that there is room for their results.

    Raises:
        LimitReachedError: the team has too many queued jobs.
        WrongStateError: there is no room for results.
    """
    limits = limits_of(session, team_id)
    if limits.queued is not None:
        lock_limits(session, team_id)
        others = queued_jobs(session, team_id) - 1
        if others >= limits.queued:
            raise LimitReachedError(
                f"your team has {others} queued jobs and may have {limits.queued}; wait until some have started, cancel "
                "some, or ask the operator for a higher limit",
                code=QUEUED_CODE,
                headers=_RETRY_AFTER,
                figures={"used": others, "limit": limits.queued},
            )
    if limits.stored_bytes is not None:
        used = stored_bytes(session, team_id)
        if used >= limits.stored_bytes:
            raise _no_room(used, limits.stored_bytes)


def check_stored(session: Session, team_id: str, added: int) -> None:
    """Check a team's limit of stored bytes, including an upload that was just added.

    Raises:
        WrongStateError: the limit is exceeded.
    """
    limit = limits_of(session, team_id).stored_bytes
    if limit is not None:
        lock_limits(session, team_id)
        used = stored_bytes(session, team_id)
        if used > limit:
            raise _no_room(used - added, limit)


def room_for_upload(session: Session, team_id: str) -> int | None:
    """Bytes that a team may still store; None if there is no limit.

    Raises:
        WrongStateError: no room is left.
    """
    limit = limits_of(session, team_id).stored_bytes
    if limit is None:
        return None
    used = stored_bytes(session, team_id)
    if used >= limit:
        raise _no_room(used, limit)
    return limit - used


def no_room_for_upload(session: Session, team_id: str) -> WrongStateError:
    """The error for an upload that is larger than the remaining room."""
    return _no_room(stored_bytes(session, team_id), limits_of(session, team_id).stored_bytes or 0)


def _no_room(used: int, limit: int) -> WrongStateError:
    return WrongStateError(
        f"your team stores {used} bytes and may store {limit}; delete uploads and jobs that you no longer need, or ask the "
        "operator for a higher limit",
        code=STORED_CODE,
        figures={"used": used, "limit": limit},
    )

"""Reads the trace of a job for its team, a page at a time, also where a whole trace is streamed.

Every page is a short transaction: a slow reader holds no connection, and sees the trials that were added meanwhile.
"""

from collections.abc import Iterator

from axformer.trial import Trial
from store.repositories.trials import trials_after
from store.session import Sessions, session_scope


def stream(sessions: Sessions, job_id: str, *, after: int, limit: int | None, chunk: int) -> Iterator[Trial]:
    """The job's trials with numbers above ``after``, in order, at most ``limit`` of them."""
    left = limit
    while left is None or left > 0:
        with session_scope(sessions) as session:
            page = trials_after(session, job_id, after=after, limit=chunk if left is None else min(chunk, left))
        yield from page.items
        if not page.has_more:
            return
        after = page.items[-1].seq
        left = None if left is None else left - len(page.items)

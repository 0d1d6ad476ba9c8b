"""Read the trace of a job for its team page by page, even when the whole trace is streamed.

Every page is a short transaction, so a slow reader holds no connection and sees trials that were added meanwhile. Every page
checks the reader's key again.
"""

from collections.abc import Iterator

from api.errors import UnauthorizedError
from axformer.plan.trial import Trial
from store.repositories.keys import Caller, is_still_valid
from store.repositories.trials import trials_after
from store.session import Sessions, session_scope


def stream(
    sessions: Sessions, caller: Caller, job_id: str, *, after: int, limit: int | None, chunk: int
) -> Iterator[Trial]:
    """The trials of the job with numbers above ``after``, in order, at most ``limit`` of them.

    Raises:
        UnauthorizedError: the caller's key has become invalid on the way. The answer is cut off, so that nobody mistakes it
            for the whole trace.
    """
    left = limit
    while left is None or left > 0:
        with session_scope(sessions) as session:
            if not is_still_valid(session, caller.key_id):
                raise UnauthorizedError(f"key {caller.key_id} is no longer valid; the trace breaks off here")
            most = chunk if left is None else min(chunk, left)
            page = trials_after(session, job_id, after=after, limit=most)
        yield from page.items
        if not page.has_more:
            return
        after = page.items[-1].seq
        left = None if left is None else left - len(page.items)

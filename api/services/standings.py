"""States of watched jobs: one database poll for all event streams of a process, so that a watcher costs little."""

import asyncio
from collections.abc import Mapping, Sequence

from starlette.concurrency import run_in_threadpool

from store.repositories.jobs import JobStanding, find_standings
from store.session import Sessions, session_scope


class Standings:
    """Polls periodically while anyone waits, and holds no connection in between."""

    def __init__(self, sessions: Sessions, seconds: float) -> None:
        self._sessions = sessions
        self._seconds = seconds
        self._wanted: set[str] = set()
        self._next: asyncio.Task[Mapping[str, JobStanding]] | None = None
        self._looks: set[asyncio.Task[Mapping[str, JobStanding]]] = set()

    async def next(self, job_id: str) -> JobStanding | None:
        """The state of the job at the next poll; None if the job does not exist.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: the database does not answer.
        """
        self._wanted.add(job_id)
        if self._next is None:
            self._next = asyncio.create_task(self._look())
            self._looks.add(self._next)
            self._next.add_done_callback(self._looks.discard)
        # One watcher that leaves must not cancel the poll of the others.
        return (await asyncio.shield(self._next)).get(job_id)

    async def end(self) -> None:
        """Wait for running polls, so that none holds a connection when connections are closed."""
        await asyncio.gather(*self._looks, return_exceptions=True)

    async def _look(self) -> Mapping[str, JobStanding]:
        await asyncio.sleep(self._seconds)
        # Later watchers wait for the next poll.
        wanted, self._wanted, self._next = self._wanted, set(), None
        return await run_in_threadpool(self._find, sorted(wanted))

    def _find(self, job_ids: Sequence[str]) -> Mapping[str, JobStanding]:
        with session_scope(self._sessions) as session:
            return find_standings(session, job_ids)

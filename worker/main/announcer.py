"""Ensures that no waiting job is forgotten: whatever happened to the messages, an idle worker looks again soon.

A message that was never sent or that the broker lost, a job whose worker died: in each case PostgreSQL holds a claimable job.
As long as there is one, each idle worker sends one message at a time; surplus messages find nothing and end.
"""

from collections.abc import Callable

from sqlalchemy.orm import Session

from store.repositories.claims import is_anything_claimable
from store.repositories.line import Abilities
from store.repositories.workers import find_worker, is_draining, see_worker
from store.session import Sessions, session_scope
from worker.base.context import KNOBS, is_compatible
from worker.base.periodic import Periodic

Send = Callable[[], None]
"""Sends one wake-up message to the broker, or raises."""


def announce(sessions: Sessions, send: Send, worker: str = "") -> bool:
    """Send a message if this worker can claim a job. Return whether a message was sent.

    No transaction is open during sending, so a slow broker blocks nothing, and two workers may send at once. A worker without
    work is recorded as alive here. A worker with work is recorded only when it looks for the job, so one that no longer takes
    messages soon counts as dead even if its process lives.
    """
    with session_scope(sessions) as session:
        is_waiting = is_compatible(session) and _is_work_for(session, worker)
        if not is_waiting:
            see_worker(session, worker)
    if is_waiting:
        send()
    return is_waiting


def _is_work_for(session: Session, worker: str) -> bool:
    known = find_worker(session, worker)
    able = Abilities(knobs=KNOBS) if known is None else Abilities(known.device, KNOBS, known.machine, known.memory)
    return is_anything_claimable(session, able)


def _nothing() -> None:
    pass


class Announcer(Periodic):
    """A thread that announces periodically until it is stopped."""

    def __init__(
        self,
        sessions: Sessions,
        send: Send,
        is_busy: Callable[[], bool],
        seconds: float,
        worker: str = "",
        on_drain: Callable[[], None] = _nothing,
    ) -> None:
        """
        Args:
            is_busy: whether this worker is unable to take a job now.
            worker: this worker's name; until it has registered, jobs for every device are announced.
            on_drain: called again and again while this worker is to take no more jobs; messages are then for others.
        """
        super().__init__("announcer", seconds)
        self._sessions = sessions
        self._send = send
        self._is_busy = is_busy
        self._worker = worker
        self._on_drain = on_drain

    def once(self) -> None:
        """Announce, unless this worker has work or is to take none."""
        with session_scope(self._sessions) as session:
            drains = is_draining(session, self._worker)
        if drains:
            self._on_drain()
        elif not self._is_busy():
            announce(self._sessions, self._send, self._worker)

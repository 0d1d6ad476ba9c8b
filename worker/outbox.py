"""Makes sure that no waiting job is forgotten: whatever became of the messages, an idle worker looks again soon.

A job's outbox row, a message that the broker lost, a job whose worker died: all come down to jobs in PostgreSQL that can
be claimed. While there are any, each idle worker sends one message at a time; surplus messages find nothing and end.
"""

import threading
from collections.abc import Callable

import structlog
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from axformer.wire.devices import Device
from store.abilities import Abilities
from store.repositories.claims import is_anything_claimable
from store.repositories.outbox import mark_sent, unsent_messages
from store.repositories.workers import find_worker, see_worker
from store.session import Sessions, session_scope
from worker.compatibility import KNOBS, is_compatible

_LOG = structlog.get_logger(__name__)
_OUTBOX_BATCH = 1000
"""Outbox rows settled at a time; all that one look could find on any sane day."""

Send = Callable[[], None]
"""Gives one wake-up message to the broker, or raises where it cannot."""


def announce(sessions: Sessions, send: Send, worker: str = "") -> bool:
    """Send a message if there is a job that this worker can claim, and settle the outbox rows. Tells whether one was sent.

    While it is sent no transaction is open, so a slow broker holds nothing up; two may send at once. Where sending fails, or
    the process dies on the way, the rows stay unsent. A worker that has nothing to do is noted as alive. One that has must look
    for the job to be, so that a worker which no longer takes messages is soon known to be dead, though its process lives.
    """
    with session_scope(sessions) as session:
        ids = [row.id for row in unsent_messages(session, _OUTBOX_BATCH)]
        is_waiting = is_compatible(session) and _is_work_for(session, worker)
        if not is_waiting:
            see_worker(session, worker)
    if is_waiting:
        send()
    if ids:
        with session_scope(sessions) as session:
            mark_sent(session, ids)
    return is_waiting


def _is_work_for(session: Session, worker: str) -> bool:
    known = find_worker(session, worker)
    return is_anything_claimable(session, Abilities(known.device if known else Device.ANY, KNOBS))


class Announcer:
    """A thread that announces again and again until it is stopped."""

    def __init__(
        self,
        sessions: Sessions,
        send: Send,
        is_busy: Callable[[], bool],
        seconds: float,
        worker: str = "",
    ) -> None:
        """Make it; ``start`` starts it.

        Args:
            sessions: of this process.
            send: gives one message to the broker.
            is_busy: whether this worker could not take a job now anyway.
            seconds: between two looks.
            worker: this worker's name; until it has made itself known, jobs for every device are announced.
        """
        self._sessions = sessions
        self._send = send
        self._is_busy = is_busy
        self._seconds = seconds
        self._worker = worker
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="announcer", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; safe in a signal handler."""
        self._over.set()

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._seconds):
            if self._is_busy():
                continue
            try:
                announce(self._sessions, self._send, self._worker)
            except (BrokerError, OSError, SQLAlchemyError) as error:
                _LOG.warning("announcing_failed", error=type(error).__name__)

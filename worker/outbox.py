"""Makes sure that no waiting job is forgotten: whatever became of the messages, an idle worker looks again soon.

A job's outbox row, a message that the broker lost, a job whose worker died: all come down to jobs in PostgreSQL that can
be claimed. While there are any, each idle worker sends one message at a time; surplus messages find nothing and end.
"""

import threading
from collections.abc import Callable

import structlog
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy.exc import SQLAlchemyError

from store.repositories.leases import is_anything_claimable
from store.repositories.outbox import mark_sent, unsent_messages
from store.session import Sessions, session_scope

_LOG = structlog.get_logger(__name__)
_OUTBOX_BATCH = 1000
"""Outbox rows settled at a time; all that one look could find on any sane day."""

Send = Callable[[], None]
"""Gives one wake-up message to the broker, or raises where it cannot."""


def announce(sessions: Sessions, send: Send) -> bool:
    """Send a message if any job can be claimed, and settle the outbox rows. Tells whether one was sent.

    Where sending fails the rows stay unsent.
    """
    with session_scope(sessions) as session:
        rows = unsent_messages(session, _OUTBOX_BATCH)
        is_waiting = is_anything_claimable(session)
        if is_waiting:
            send()
        if rows:
            mark_sent(session, [row.id for row in rows])
    return is_waiting


class Announcer:
    """A thread that announces again and again until it is stopped."""

    def __init__(self, sessions: Sessions, send: Send, is_busy: Callable[[], bool], seconds: float) -> None:
        """Make it; ``start`` starts it.

        Args:
            sessions: of this process.
            send: gives one message to the broker.
            is_busy: whether this worker could not take a job now anyway.
            seconds: between two looks.
        """
        self._sessions = sessions
        self._send = send
        self._is_busy = is_busy
        self._seconds = seconds
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
                announce(self._sessions, self._send)
            except (BrokerError, OSError, SQLAlchemyError) as error:
                _LOG.warning("announcing_failed", error=type(error).__name__)

"""A thread that does something again and again until it is stopped."""

import threading
import time
from abc import ABC, abstractmethod

import structlog
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy.exc import SQLAlchemyError

from store.errors import StoreError

_LOG = structlog.get_logger(__name__)
_MAY_BE_AWAY = (BrokerError, SQLAlchemyError, StoreError, OSError)
"""Errors of a service that may answer the next time."""


class Periodic(ABC):
    """A thread with a name. What does not answer is logged, and asked again the next time."""

    def __init__(self, name: str, seconds: float, *, begins_at_once: bool = False) -> None:
        """
        Args:
            name: of the thread and in the log.
            seconds: the pause between two times.
            begins_at_once: whether there is no pause before the first time.
        """
        self.name = name
        """What it is called, in the log and in metrics."""
        self.succeeded_at: float | None = None
        """When it last did its work without an error, in seconds since 1970."""
        self._seconds, self._first = seconds, 0.0 if begins_at_once else seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def once(self) -> None:
        """Do it once. Work that lasts looks at :attr:`is_over`."""

    @property
    def is_over(self) -> bool:
        """Whether the thread was asked to end."""
        return self._over.is_set()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; safe in a signal handler. It does not wait for what it is doing."""
        self._over.set()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def try_once(self) -> None:
        """Do it once, and log what does not answer."""
        try:
            self.once()
            self.succeeded_at = time.time()
        except _MAY_BE_AWAY as error:
            reason = (
                {"reason": str(error)} if isinstance(error, StoreError | OSError) else {}
            )  # others quote what they sent
            _LOG.warning(f"{self.name}_failed", error=type(error).__name__, **reason)
        except Exception:  # noqa: BLE001 - whatever it is, the thread goes on
            _LOG.exception(f"{self.name}_failed")

    def _run(self) -> None:
        pause = self._first
        while not self._over.wait(pause):
            self.try_once()
            pause = self._seconds

"""Keeps a claimed job this worker's own while it works, and tells the work when to stop."""

import threading
import time
from types import TracebackType

import structlog
from sqlalchemy.exc import SQLAlchemyError

from store.errors import CancelRequestedError, LeaseLostError, PauseRequestedError
from store.states import JobState
from worker.ledger import Ledger

_LOG = structlog.get_logger(__name__)


class StopRequestedError(Exception):
    """This worker is to end, so its job goes back to the queue."""


class Lease:
    """A thread that renews the lease of a claimed job as long as the context is open.

    The work calls ``check_stop`` where it can be broken off without harm, and ``check`` where only the job's own fate counts.
    """

    def __init__(
        self, ledger: Ledger, *, lease_seconds: float, heartbeat_seconds: float, stop: threading.Event
    ) -> None:
        self._ledger = ledger
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._stop = stop
        self._over = threading.Event()
        self._lost = threading.Event()
        self._cancelled = threading.Event()
        self._paused = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease-{ledger.job_id}", daemon=True)

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Make sure that the job is still this worker's and still wanted.

        Raises:
            LeaseLostError: another worker has it, or it has ended.
            CancelRequestedError: its owner wants it cancelled.
        """
        if self._lost.is_set():
            raise LeaseLostError(f"job {self._ledger.job_id} is no longer this worker's")
        if self._cancelled.is_set():
            raise CancelRequestedError(f"job {self._ledger.job_id} is being cancelled")

    def check_stop(self) -> None:
        """``check``, and make sure that this worker may go on.

        Raises:
            PauseRequestedError: the job's owner wants it paused.
            StopRequestedError: this worker is to end.
        """
        self.check()
        if self._paused.is_set():
            raise PauseRequestedError(f"job {self._ledger.job_id} is being paused")
        if self._stop.is_set():
            raise StopRequestedError("the worker is to stop")

    def _beat(self) -> None:
        renewed = time.monotonic()
        while not self._over.wait(self._heartbeat_seconds):
            asked = time.monotonic()
            try:
                state = self._ledger.renew(self._lease_seconds)
            except LeaseLostError:
                self._lost.set()
                return
            except SQLAlchemyError as error:
                _LOG.warning("heartbeat_failed", job_id=self._ledger.job_id, error=type(error).__name__)
            else:
                renewed = asked
                if state is JobState.CANCELLING:
                    self._cancelled.set()
                elif state is JobState.PAUSING:
                    self._paused.set()
            if time.monotonic() - renewed > self._lease_seconds:
                self._lost.set()  # the database is silent, and may have given the job to another worker by now
                return

"""Renew the lease of a claimed job while it runs, and signal the work when to stop."""

import threading
import time

import structlog
from sqlalchemy.exc import SQLAlchemyError

from store.errors import CancelRequestedError, LeaseLostError, PauseRequestedError
from store.repositories import leases
from store.states import JobState
from worker.job.ledger import Ledger

_LOG = structlog.get_logger(__name__)


class StopRequestedError(Exception):
    """This worker must end, so its job goes back to the queue."""


class TookTooLongError(Exception):
    """The job's process said nothing for too long, or the job has held workers for as long as it may."""


class Lease:
    """A thread that renews the lease of a claimed job while the context is open.

    The work calls ``check_stop`` wherever it can be interrupted, and ``check`` where a pause or the end of the worker must
    not interrupt it.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        lease_seconds: float,
        heartbeat_seconds: float,
        stop: threading.Event,
        most_seconds: float = float("inf"),
        held_seconds: float = 0.0,
    ) -> None:
        """
        Args:
            stop: set when this worker must end.
            most_seconds: how long the job may hold workers in all.
            held_seconds: how long it has held them.
        """
        self._most_seconds = most_seconds
        self._ends_at = time.monotonic() + most_seconds - held_seconds
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

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Check that this worker still holds the job and that it is not cancelled.

        Raises:
            LeaseLostError: another worker has it, or it has ended.
            CancelRequestedError: the owner has cancelled it.
            TookTooLongError: it has held workers for as long as it may.
        """
        if self._lost.is_set():
            raise LeaseLostError(f"job {self._ledger.job_id} is no longer this worker's")
        if self._cancelled.is_set():
            raise CancelRequestedError(f"job {self._ledger.job_id} is being cancelled")
        if time.monotonic() > self._ends_at:
            raise TookTooLongError(
                f"the job has held workers for {self._most_seconds:,.0f} s, the most that the operator allows a job of this "
                "team: post it with fewer rows, a coarser search or fewer forms, or ask the operator for more time"
            )

    def check_stop(self) -> None:
        """Call :meth:`check`, and check that this worker may continue.

        Raises:
            PauseRequestedError: the owner has paused the job.
            StopRequestedError: this worker must end.
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
                state = self._ledger.write(leases.heartbeat, self._lease_seconds)
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
                self._lost.set()  # without the database's answer, the lease may have gone to another worker
                return

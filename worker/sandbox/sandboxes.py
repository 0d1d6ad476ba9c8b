"""The sandboxes of a worker's process: one a job, and one ahead, forked from one parent, so that no job waits for imports."""

import threading
from types import TracebackType

import structlog

from store.settings import Settings
from worker.sandbox.process import Start
from worker.sandbox.sandbox import Sandbox
from worker.sandbox.warm_parent import Forks

_LOG = structlog.get_logger(__name__)


class Sandboxes:
    """Starts sandboxes. Use it as a context; one that was started ahead and not taken ends with it."""

    def __init__(self, settings: Settings, start: Start | None = None) -> None:
        """
        Args:
            settings: of the worker.
            start: how processes are started; forked from a warm parent where nothing is said.
        """
        self._settings = settings
        self._forks = Forks()
        self._start = self._forks if start is None else start
        self._ahead: Sandbox | None = None
        self._taking = threading.Lock()

    def __enter__(self) -> "Sandboxes":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def prepare(self) -> Sandbox:
        """Start one ahead, where there is none that lives."""
        if self._ahead is not None and not self._ahead.is_alive():
            _LOG.warning("sandbox_died", reason="it ended before it had a job")
            self._close_ahead()
        if self._ahead is None:
            self._ahead = Sandbox(self._settings, self._start)
        return self._ahead

    def take(self, job_id: str) -> Sandbox:
        """One for this job, which the caller closes."""
        with self._taking:
            taken = self.prepare()
            self._ahead = None
        try:
            taken.give_to(job_id)
        except BaseException:
            taken.close()
            raise
        return taken

    def close(self) -> None:
        """End the one that was not taken, and a parent that nobody else has."""
        self._close_ahead()
        self._forks.close()

    def _close_ahead(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

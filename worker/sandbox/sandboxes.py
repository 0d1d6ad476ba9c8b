"""The sandboxes of a worker's process: one a job, and one ahead, so that no job waits for imports."""

import threading
from types import TracebackType

import structlog

from store.settings import Settings
from worker.sandbox.process import ConfinedProcess, Start
from worker.sandbox.sandbox import Sandbox

_LOG = structlog.get_logger(__name__)


class Sandboxes:
    """Starts sandboxes. Use it as a context; one that was started ahead and not taken ends with it."""

    def __init__(self, settings: Settings, start: Start = ConfinedProcess) -> None:
        self._settings = settings
        self._start = start
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
            self.close()
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
        """End the one that was not taken."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

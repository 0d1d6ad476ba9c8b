"""The sandboxes of a worker process: one per job and one started ahead, all forked from a warm parent to save imports."""

import threading

import structlog

from store.settings import Settings
from worker.sandbox.process import Start
from worker.sandbox.sandbox import Sandbox
from worker.sandbox.warm_parent import fork_from_kept

_LOG = structlog.get_logger(__name__)


class Sandboxes:
    """Starts sandboxes. As a context manager it ends the sandbox that was started ahead but not taken."""

    def __init__(self, settings: Settings, start: Start = fork_from_kept) -> None:
        self._settings = settings
        self._start = start
        self._ahead: Sandbox | None = None
        self._taking = threading.Lock()

    def __enter__(self) -> "Sandboxes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self) -> Sandbox:
        """Start a sandbox ahead unless one is alive."""
        if self._ahead is not None and not self._ahead.is_alive():
            _LOG.warning("sandbox_died", reason="it ended before it had a job")
            self.close()
        if self._ahead is None:
            self._ahead = Sandbox(self._settings, self._start)
        return self._ahead

    def take(self, job_id: str) -> Sandbox:
        """Take the sandbox for a job. The caller closes it."""
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
        """End the sandbox that was not taken."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

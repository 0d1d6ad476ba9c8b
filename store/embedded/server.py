"""Common parts of the embedded servers: the child process, its address, and waiting until it answers."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from store.errors import EmbeddedServerError
from store.system.processes import Child

START_SECONDS = 60.0
"""Both servers start in about a second; a busy machine may need many times that."""
STOP_SECONDS = 20.0
"""Both flush their data and exit in well under a second."""
_POLL_SECONDS = 0.03


@dataclass(frozen=True)
class EmbeddedServer:
    """A running server and the address clients use."""

    child: Child
    url: str

    def stop(self) -> None:
        """Stop the server and wait until it has ended."""
        self.child.stop(STOP_SECONDS)


def wait_until_ready(child: Child, answers: Callable[[], bool]) -> None:
    """Wait until the server answers; stop it if it does not.

    Raises:
        EmbeddedServerError: it has ended, or did not answer in time; the message holds the end of its log.
    """
    deadline = time.monotonic() + START_SECONDS
    while not answers():
        if child.has_ended() or time.monotonic() > deadline:
            child.stop(grace_seconds=0)
            raise EmbeddedServerError(f"{child.name} did not start; the end of {child.log}:\n{child.log_tail()}")
        time.sleep(_POLL_SECONDS)


@contextmanager
def running(server: EmbeddedServer) -> Iterator[EmbeddedServer]:
    """Stop the server at the end of the context."""
    try:
        yield server
    finally:
        server.stop()

"""The parts of a whole service on one machine, each a child process, started in order and stopped in reverse."""

import http
import http.client
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from store.embedded.server import STOP_SECONDS, EmbeddedServer
from store.errors import StackError, StoppedError
from store.system.processes import LOOPBACK, Child, spawn

_POLL_SECONDS = 0.2
"""How soon a dead child or a Ctrl-C is noticed."""
_REQUEST_SECONDS = 5.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CHECKOUT = Path(__file__).resolve().parents[2]
"""Directory of the programs' packages."""


@dataclass(frozen=True)
class Program:
    """One of the service's own programs, run as ``python -m ARGUMENTS``."""

    name: str
    arguments: list[str]
    log: Path
    environment: dict[str, str]
    grace_seconds: float
    """How long it may take to end."""


@dataclass
class Stack:
    """The running children. Leaving the context stops them, the last started first.

    A signal asks for the end; a second one ends api and worker without waiting for them.
    """

    children: list[Child] = field(default_factory=list)
    impatient_for: list[Child] = field(default_factory=list)
    signals: int = 0
    _exit: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "Stack":
        for number in _SIGNALS:
            self._exit.callback(signal.signal, number, signal.signal(number, self._on_signal))
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def add_server(self, start: Callable[[], EmbeddedServer]) -> str:
        """Start an embedded server and give its address."""
        self.check()
        server = start()
        self._add(server.child, STOP_SECONDS)
        return server.url

    def add_program(self, program: Program) -> None:
        """Start one of the service's own programs in the checkout."""
        self.check()
        command = [sys.executable, "-m", *program.arguments]
        child = spawn(
            program.name,
            command,
            log=program.log,
            directory=CHECKOUT,
            environment=program.environment,
            orphan_signal=signal.SIGKILL,  # without this process the servers end too, so an orderly end is impossible
        )
        self.impatient_for.append(child)
        self._add(child, program.grace_seconds)

    def check(self) -> None:
        """Check that everything runs and that no signal has asked for the end.

        Raises:
            StoppedError: a signal has come.
            StackError: a child has ended; the message holds the end of its log.
        """
        if self.signals:
            raise StoppedError
        for child in self.children:
            if child.has_ended():
                status = f"{child.name} has ended with status {child.stop(grace_seconds=0)}"
                raise StackError(f"{status}; the end of {child.log}:\n{child.log_tail()}")

    def wait_until_ready(self, port: int, seconds: float) -> None:
        """Wait until the API says it is ready, which needs database, schema and broker.

        Raises:
            StoppedError, StackError: as in ``check``, or the time is over.
        """
        deadline = time.monotonic() + seconds
        while (status := _ready_status(port)) != http.HTTPStatus.OK:
            self.check()
            if time.monotonic() > deadline:
                raise StackError(f"the api is not ready after {seconds:g} s (last answer: {status}); see its log")
            time.sleep(_POLL_SECONDS)

    def watch(self) -> None:
        """Stay until something ends or a signal comes; always raises, as ``check`` does."""
        while True:
            self.check()
            time.sleep(_POLL_SECONDS)

    def _add(self, child: Child, grace_seconds: float) -> None:
        self.children.append(child)
        self._exit.callback(child.stop, grace_seconds)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.signals += 1
        if self.signals > 1:
            for child in self.impatient_for:
                child.kill()


def _ready_status(port: int) -> int | None:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_REQUEST_SECONDS)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()

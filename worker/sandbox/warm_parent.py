"""The parent of confined processes, from the worker's side: kept by its main process, asked to fork by those that run jobs."""

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from store.settings import Settings
from worker.sandbox import parent
from worker.sandbox.lines import Lines
from worker.sandbox.process import INPUTS, LOG, MADE, ConfinedProcess
from worker.sandbox.restrictions import NOWHERE, environment, specification

PROGRAM = "worker.sandbox.child"
ADDRESS = "WARM_PARENT_SOCKET"
"""In the environment of a worker's processes: where the parent listens that its main process keeps."""
_BACKLOG = 16
_END_SECONDS = 30.0
"""A killed process is gone at once, unless the kernel waits for a device."""
_LOOK_SECONDS = 1.0

_LOG = structlog.get_logger(__name__)


class WarmParent:
    """Keeps one parent. Close it: what it has forked ends with it."""

    def __init__(self, program: str = PROGRAM) -> None:
        """It is started by :meth:`keep`.

        Args:
            program: module that serves a job, see :mod:`worker.sandbox.parent`.
        """
        self._program = program
        self._directory = TemporaryDirectory(prefix="axformer-")  # mode 0700; the path of a socket must be short
        self.address = str(Path(self._directory.name, "parent"))
        """The path of the socket where it listens."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.address)
        self._listener.listen(_BACKLOG)
        self._running: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    @property
    def pid(self) -> int | None:
        """Of the parent; None where none was started."""
        return None if self._running is None else self._running[0].pid

    def keep(self) -> None:
        """Start it, or another where it has died. Who has asked meanwhile is answered by the new one."""
        if self._running is not None:
            code = self._running[0].poll()
            if code is None:
                return
            _LOG.warning("warm_parent_died", code=code)
            self._end()
        lifeline, theirs = socket.socketpair()
        numbers = (theirs.fileno(), self._listener.fileno())
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", parent.__name__, *map(str, numbers), self._program],
                stdin=subprocess.DEVNULL,
                cwd="/",
                env=environment(os.environ, NOWHERE),
                pass_fds=numbers,
                start_new_session=True,
            )
        self._running = process, lifeline

    def close(self) -> None:
        """End it, and with it all that it has forked."""
        self._end()
        self._listener.close()
        self._directory.cleanup()

    def _end(self) -> None:
        if self._running is not None:
            process, lifeline = self._running
            lifeline.close()
            process.kill()
            process.wait(_END_SECONDS)
            self._running = None


class Keeper:
    """A thread that keeps a parent as long as the worker lasts."""

    def __init__(self) -> None:
        self._running: tuple[threading.Thread, WarmParent] | None = None
        self._over = threading.Event()

    def start(self) -> None:
        """Start the parent, and let the processes that this one starts know of it."""
        warm = WarmParent()
        warm.keep()
        os.environ[ADDRESS] = warm.address
        thread = threading.Thread(target=self._run, args=(warm,), name="warm-parent", daemon=True)
        thread.start()
        self._running = thread, warm

    def stop(self) -> None:
        """End both."""
        if self._running is not None:
            thread, warm = self._running
            self._over.set()
            thread.join()
            warm.close()

    def _run(self, warm: WarmParent) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            warm.keep()


class Forks:
    """Starts confined processes, see :class:`worker.sandbox.process.Start`: forks of the parent that the worker's main process
    keeps, or of one of its own where nobody does."""

    def __init__(self) -> None:
        self._own: WarmParent | None = None

    def __call__(self, directory: Path, settings: Settings) -> ConfinedProcess:
        """Ask for a process; it comes when the parent has done its imports."""
        return fork(self._address(), directory, settings)

    def close(self) -> None:
        """End the parent process that this one started."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _address(self) -> str:
        if ADDRESS in os.environ:
            return os.environ[ADDRESS]
        if self._own is None:
            self._own = WarmParent()
        self._own.keep()
        return self._own.address


def fork(address: str, directory: Path, settings: Settings) -> ConfinedProcess:
    """Ask a parent for a process that may read ``directory/inputs`` and write to ``directory/made``.

    Raises:
        OSError: nobody listens there.
    """
    asked = json.dumps(specification(directory / INPUTS, directory / MADE, settings).as_dict()).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        (told, tells), (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe(), os.pipe()
        leash, theirs = socket.socketpair()
        log = (directory / LOG).open("x+b")
        os.write(tells, asked)  # some kilobytes, which a pipe holds
        os.close(tells)
        with suppress(OSError):  # where the parent has just died, its process is found dead
            socket.send_fds(connection, [parent.REQUEST], [told, theirs_in, theirs_out, log.fileno(), theirs.fileno()])
        theirs.close()
        for descriptor in (told, theirs_in, theirs_out):
            os.close(descriptor)
    leash.setblocking(False)
    return ConfinedProcess(Lines(ours_in, ours_out), leash, log)

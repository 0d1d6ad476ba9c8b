"""The parent of confined processes, from the worker's side. The main process keeps it; job processes ask it to fork."""

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from store.settings import Settings
from worker.base.periodic import Periodic
from worker.sandbox import parent
from worker.sandbox.lines import PipeEnd
from worker.sandbox.process import INPUTS, LOG, MADE, ConfinedProcess
from worker.sandbox.restrictions import NOWHERE, environment, specification

PROGRAM = "worker.sandbox.child"
ADDRESS = "WARM_PARENT_SOCKET"
"""Environment variable of a worker's processes: the socket of the parent that the main process keeps."""
_BACKLOG = 16
_END_SECONDS = 30.0
"""A killed process ends at once, unless the kernel waits for a device."""
_LOOK_SECONDS = 1.0

_LOG = structlog.get_logger(__name__)


class WarmParent:
    """Keeps one parent process. Closing it ends everything that the parent forked."""

    def __init__(self, program: str = PROGRAM) -> None:
        """Prepare the socket; :meth:`keep` starts the parent.

        Args:
            program: name of the module that serves a job, see :mod:`worker.sandbox.parent`.
        """
        self._program = program
        self._directory = TemporaryDirectory(prefix="axformer-")  # mode 0700; the path of a socket must be short
        self.address = str(Path(self._directory.name, "parent"))
        """Path of the socket that the parent listens on."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.address)
        self._listener.listen(_BACKLOG)
        self._running: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the parent; None if none runs."""
        return None if self._running is None else self._running[0].pid

    def keep(self) -> None:
        """Start the parent, or a new one if it has died. The new one answers pending requests."""
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
        """End the parent and everything that it forked."""
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


class Keeper(Periodic):
    """A thread that keeps a parent for the lifetime of the worker."""

    def __init__(self, program: str = PROGRAM) -> None:
        super().__init__("warm-parent", _LOOK_SECONDS)
        self._program = program
        self._warm: WarmParent | None = None

    def start(self) -> None:
        """Start the parent, and pass its address to child processes through the environment."""
        self._warm = WarmParent(self._program)
        self._warm.keep()
        os.environ[ADDRESS] = self._warm.address
        super().start()

    def once(self) -> None:
        """Start another parent if this one has died."""
        if self._warm is not None:
            self._warm.keep()

    def close(self) -> None:
        """End the thread, if it was started, and the parent."""
        if self._warm is not None:
            self.stop()
            self.join()
            self._warm.close()


def fork_from_kept(directory: Path, settings: Settings) -> ConfinedProcess:
    """Request a process (:data:`worker.sandbox.process.Start`) of the parent that the worker's main process keeps; it starts
    once the parent has finished its imports."""
    return fork(os.environ[ADDRESS], directory, settings)


def fork(address: str, directory: Path, settings: Settings) -> ConfinedProcess:
    """Request a process that may read ``directory/inputs`` and write to ``directory/made``.

    Raises:
        OSError: nothing listens at the address.
    """
    restrictions = json.dumps(asdict(specification(directory / INPUTS, directory / MADE, settings))).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        (request_in, request_out), (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe(), os.pipe()
        leash, theirs = socket.socketpair()
        log = (directory / LOG).open("x+b")
        os.write(request_out, restrictions)  # a few kilobytes fit into a pipe
        os.close(request_out)
        handed = [request_in, theirs_in, theirs_out, log.fileno(), theirs.fileno()]
        with suppress(OSError):  # if the parent has just died, the process looks dead
            socket.send_fds(connection, [parent.REQUEST], handed)
        theirs.close()
        for descriptor in (request_in, theirs_in, theirs_out):
            os.close(descriptor)
    leash.setblocking(False)
    return ConfinedProcess(PipeEnd(ours_in, ours_out), leash, log)

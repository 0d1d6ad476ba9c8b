"""Child processes that end, with all their descendants, when asked to or when this process dies.

A child that has ended keeps its id until it is waited for; then the system may reuse the id. A caller that still has to kill
a child's descendants therefore checks with :func:`has_ended`, which does not reap the child as ``Popen.poll`` does.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from store.system import launch

_KILL_WAIT_SECONDS = 10.0
"""A killed process ends at once, unless the kernel waits for a device."""
_LOOK_SECONDS = 0.02
"""Interval of checks on a child that was asked to end: short for a person, long for a processor."""
_TAIL_LINES = 20
"""Enough of a log to hold one traceback's end."""


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a child of this process is no longer running; its id stays its own."""
    if process.returncode is not None:
        return True
    try:
        return psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE  # type: ignore[no-any-return]
    except psutil.NoSuchProcess:  # another thread has waited for it at this moment
        return True


@dataclass(frozen=True)
class Child:
    """A running program in its own session, which a Ctrl-C on the terminal does not reach."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    stop_signal: signal.Signals

    def has_ended(self) -> bool:
        """Whether it is no longer running."""
        return has_ended(self.process)

    def stop(self, grace_seconds: float) -> int:
        """Ask the program to end, kill it and its remaining children after the grace period, and return its exit code."""
        if not self.has_ended():
            os.kill(self.process.pid, self.stop_signal)
            until = time.monotonic() + grace_seconds
            while not self.has_ended() and time.monotonic() < until:
                time.sleep(_LOOK_SECONDS)
        self.kill()
        return self.process.wait(_KILL_WAIT_SECONDS)

    def kill(self) -> None:
        """Kill the program and all its children; nothing happens if it has been waited for."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def log_tail(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])


def spawn(
    name: str,
    command: Sequence[str | Path],
    *,
    log: Path,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    user: str = "",
    stop_signal: signal.Signals = signal.SIGTERM,
    orphan_signal: signal.Signals | None = None,
) -> Child:
    """Start a program with its output appended to a log file; as another user if this one is root.

    If this process dies without stopping it, the program gets ``orphan_signal``, by default ``stop_signal`` (on Linux).

    Raises:
        FileNotFoundError: there is no such program.
    """
    program, *arguments = [str(part) for part in command]
    path = shutil.which(program)
    if path is None:
        raise FileNotFoundError(f"there is no program '{program}'")
    launcher = [
        sys.executable,
        "-I",
        "-S",
        str(Path(launch.__file__).resolve()),
        str(int(orphan_signal or stop_signal)),
        user,
        path,
    ]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603
            [*launcher, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
    return Child(name=name, process=process, log=log, stop_signal=stop_signal)


def descendants(pid: int) -> list[psutil.Process]:
    """The living descendants of a process.

    ``psutil.Process.children`` leaves out children that seem older than their parent. It computes both ages from the boot
    time, which changes when the clock is set in between, and then misses young processes.
    """
    children: defaultdict[int, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            children[process.ppid()].append(process)
    tree = children[pid]
    for process in tree:  # the list grows during the loop
        tree.extend(children[process.pid])
    return tree


LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that nothing listens on at this moment, chosen by the kernel."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen on this port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def once(act: Callable[[], None]) -> Callable[..., None]:
    """A signal handler that acts at the first signal only.

    Python runs a handler between any two steps of the main thread, also in the middle of the same handler for an earlier
    signal. Anything that takes a lock, such as ``threading.Event.set``, would then wait for itself forever.
    """
    called: list[None] = []

    def handler(*_: object, **__: object) -> None:
        if not called:
            called.append(None)  # a signal between these two lines is handled whole before this one goes on
            act()

    return handler

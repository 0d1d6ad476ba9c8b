"""Child processes that end, with all that they have started, when they are told to or when this process dies."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from store import launch

_KILL_WAIT_SECONDS = 10.0
"""A killed process is gone at once, unless the kernel waits for a device."""
_TAIL_LINES = 20
"""Enough of a log to hold one traceback's end."""


@dataclass(frozen=True)
class Child:
    """A running program of its own session; a Ctrl-C on the terminal does not reach it."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    stop_signal: signal.Signals

    def has_ended(self) -> bool:
        """Whether it is no longer running."""
        return self.process.poll() is not None

    def stop(self, grace_seconds: float) -> None:
        """Ask it to end; kill it, and whatever of its children is left, after the grace."""
        if not self.has_ended():
            self.process.send_signal(self.stop_signal)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(grace_seconds)
        self.kill()
        self.process.wait(_KILL_WAIT_SECONDS)

    def kill(self) -> None:
        """End it and all of its children at once."""
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

    Where this process dies without having stopped it, the program gets ``orphan_signal``, by default ``stop_signal`` (on
    Linux).

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

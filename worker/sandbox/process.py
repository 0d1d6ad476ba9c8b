"""A confined process for one job, as the worker sees it: started, spoken with, ended."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

from store.processes import has_ended
from store.settings import Settings
from worker.sandbox import child, launch
from worker.sandbox.lines import Lines
from worker.sandbox.walls import environment, specification

INPUTS, MADE, LOG = "inputs", "made", "errors.log"
"""In a job's directory: what it may read, where it may write, and what it has said to nobody."""
_LOG_BYTES = 4000
"""Of the end of what it said, for the operator; enough for a traceback."""


class Process(Protocol):
    """Something that serves one job over lines."""

    @property
    def lines(self) -> Lines:
        """The way to it."""
        ...

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        ...

    def end(self) -> str:
        """End it at once with all that it has started, and say how it ended, for the operator."""
        ...


class Start(Protocol):
    """How processes are started."""

    def __call__(self, directory: Path, settings: Settings) -> Process:
        """Start one that may read ``directory/inputs`` and write to ``directory/made``."""
        ...


class ConfinedProcess:
    """A fresh interpreter behind the walls. The thread that starts it must live as long as it does."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        inputs, made = directory / INPUTS, directory / MADE
        self._log = (directory / LOG).open("x+b")
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        command = (sys.executable, "-m", child.__name__, str(theirs_in), str(theirs_out))
        walls = specification(command, theirs_out, inputs, made, settings)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-S", "-m", launch.__name__, json.dumps(walls.as_dict())],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                cwd=made,
                env=environment(os.environ, made),
                pass_fds=(theirs_in, theirs_out),
                start_new_session=True,
            )
        except BaseException:
            os.close(ours_in)
            os.close(ours_out)
            self._log.close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self.lines = Lines(ours_in, ours_out)

    @property
    def pid(self) -> int:
        """Of the launcher, whose end is the end of all."""
        return self._process.pid

    def is_alive(self) -> bool:
        """See :class:`Process`."""
        return not has_ended(self._process)

    def end(self) -> str:
        """See :class:`Process`. Where no namespace holds them, processes that have left its session and its tree stay."""
        ended = has_ended(self._process)
        self.lines.close()
        for one in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        how = f"exit code {code}" if ended else "it had not ended"
        return f"{how}; {self._said()}"

    def _said(self) -> str:
        with self._log as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_BYTES))
            return log.read(_LOG_BYTES).decode(errors="replace").strip() or "it said nothing"

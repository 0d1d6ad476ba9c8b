"""A confined process for one job, as the worker sees it: started, spoken with, ended."""

import os
import socket
from pathlib import Path
from typing import BinaryIO, Protocol

from store.settings import Settings
from worker.sandbox.lines import Lines

INPUTS, MADE, LOG = "inputs", "made", "errors.log"
"""In a job's directory: what it may read, where it may write, and what it has said to nobody."""
_LOG_BYTES = 4000
"""Of the end of what it said, for the operator; enough for a traceback."""
_TOLD_BYTES = 256
_END_SECONDS = 30.0
"""A killed process is gone at once, unless the kernel waits for a device."""


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
    """One that was forked behind the restrictions, by :mod:`worker.sandbox.parent`."""

    def __init__(self, lines: Lines, leash: socket.socket, log: BinaryIO) -> None:
        """
        Args:
            lines: the way to it.
            leash: tells its id and its end; closing it ends the process.
            log: what it says to nobody.
        """
        self.lines = lines
        self._leash = leash
        self._log = log
        self._told: list[str] = []
        self._is_cut = False
        """Whether the parent tells nothing any more."""

    @property
    def pid(self) -> int | None:
        """Of the process, whose end is the end of all; None until it was forked."""
        self._listen()
        return next((int(words.removeprefix("pid ")) for words in self._told if words.startswith("pid ")), None)

    def is_alive(self) -> bool:
        """See :class:`Process`; one that is still to be forked lives."""
        self._listen()
        return not self._is_cut and self._code is None

    def end(self) -> str:
        """See :class:`Process`. Where no namespace holds them, processes that have left its session and its tree stay."""
        ended = not self.is_alive()
        self.lines.close()
        if (
            self.pid is not None and not self._is_cut
        ):  # its parent is there and ends it, else it ends as soon as it begins
            self._leash.shutdown(socket.SHUT_WR)
            self._leash.settimeout(_END_SECONDS)
            while not self._is_cut:
                self._listen()
        self._leash.close()
        how = f"exit code {self._code}" if ended else "it had not ended"
        return f"{how}; {self._said()}"

    @property
    def _code(self) -> int | None:
        """What it ended with, as far as its parent has told."""
        return next((int(words.removeprefix("ended ")) for words in self._told if words.startswith("ended ")), None)

    def _listen(self) -> None:
        """Take what the parent has told, or with a timeout wait for it."""
        try:
            while not self._is_cut:
                told = self._leash.recv(_TOLD_BYTES)
                self._told += told.decode().splitlines()
                self._is_cut = not told
        except BlockingIOError:
            pass
        except ConnectionError:
            self._is_cut = True

    def _said(self) -> str:
        with self._log as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_BYTES))
            return log.read(_LOG_BYTES).decode(errors="replace").strip() or "it said nothing"

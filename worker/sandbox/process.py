"""A confined process for one job, from the worker's side: start it, talk to it, end it."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from store.settings import Settings
from worker.sandbox.lines import PipeEnd

INPUTS, MADE, LOG = "inputs", "made", "errors.log"
"""In a job's directory: what the process may read, where it may write, and its standard output and error."""
STATE = f"{MADE}/state"
"""What the process writes to continue in another one; it outlives the directory."""
_LOG_BYTES = 4000
"""Bytes of the log's end that the operator is shown; enough for a traceback."""
_REPORT_BYTES = 256
_END_SECONDS = 30.0
"""A killed process ends at once, unless the kernel waits for a device."""


class ConfinedProcess:
    """A restricted process that :mod:`worker.sandbox.parent` forked."""

    def __init__(self, lines: PipeEnd, leash: socket.socket, log: BinaryIO) -> None:
        """
        Args:
            lines: the connection to the process.
            leash: socket on which the parent reports the process's id and end; closing it ends the process.
            log: file with the standard output and error of the process.
        """
        self.lines = lines
        self._leash = leash
        self._log = log
        self._reports: list[str] = []
        self._is_cut = False
        """Whether the parent has closed its end of the leash."""

    @property
    def pid(self) -> int | None:
        """Id of the process, with which all its descendants end; None until it is forked."""
        self._listen()
        return self._number_after("pid ")

    def is_alive(self) -> bool:
        """Whether the process is still running; one that is not forked yet counts as alive."""
        self._listen()
        return not self._is_cut and self._code is None

    def end(self) -> str:
        """Kill the process and all its descendants, and describe for the operator how it ended. Without namespaces, descendants
        that left its session and its tree survive."""
        ended = not self.is_alive()
        self.lines.close()
        if self.pid is not None and not self._is_cut:  # the parent kills it; a process not forked yet ends by itself
            self._leash.shutdown(socket.SHUT_WR)
            self._leash.settimeout(_END_SECONDS)
            while not self._is_cut:
                self._listen()
        self._leash.close()
        how = f"exit code {self._code}" if ended else "it had not ended"
        return f"{how}; {self._said()}"

    @property
    def _code(self) -> int | None:
        """The exit code that the parent reported; None if it reported none."""
        return self._number_after("ended ")

    def _number_after(self, word: str) -> int | None:
        return next((int(line.removeprefix(word)) for line in self._reports if line.startswith(word)), None)

    def _listen(self) -> None:
        """Read the parent's reports; with a timeout on the leash, wait for one."""
        try:
            while not self._is_cut:
                report = self._leash.recv(_REPORT_BYTES)
                self._reports += report.decode().splitlines()
                self._is_cut = not report
        except BlockingIOError:
            pass
        except ConnectionError:
            self._is_cut = True

    def _said(self) -> str:
        with self._log as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_BYTES))
            return log.read(_LOG_BYTES).decode(errors="replace").strip() or "it said nothing"


Start = Callable[[Path, Settings], ConfinedProcess]
"""Starts a process that may read ``directory/inputs`` of a directory and write to its ``directory/made``."""

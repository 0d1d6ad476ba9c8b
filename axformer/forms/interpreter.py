"""Where a fresh Python is started: one place, so that tests need not wait for a thousand imports of PyTorch.

It begins with its imports and then waits for a line on its standard input that says what is asked, so that whoever starts it
early does not wait for them.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

TIMEOUT_SECONDS = 600


class Interpreter(Protocol):
    """A Python that was started, in a process that holds nothing of this one's."""

    def tell(self, line: str) -> subprocess.CompletedProcess[str]:
        """Say what is asked, and wait for its end."""

    def end(self) -> None:
        """End it at once, if it has not ended."""


class FreshInterpreter:
    """What this package always starts: an interpreter of its own."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str) -> subprocess.CompletedProcess[str]:
        """See :class:`Interpreter`."""
        process = self._process
        try:
            out, errors = process.communicate(f"{line}\n", TIMEOUT_SECONDS)
        finally:
            self.end()
        return subprocess.CompletedProcess(process.args, process.returncode, out, errors)

    def end(self) -> None:
        """See :class:`Interpreter`."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


Launch = Callable[[Sequence[str]], Interpreter]
"""Starts a Python with these arguments."""

launch: Launch = FreshInterpreter

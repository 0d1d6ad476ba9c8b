"""Starts fresh Python processes. This is the only place that does so, so tests can avoid thousands of imports of PyTorch.

A process begins with its imports and then waits for a request on its standard input. Started early, it has finished its imports
by the time of the request.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence

TIMEOUT_SECONDS = 600


class FreshInterpreter:
    """A started Python process that shares no state with this one. The package always uses this class."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str) -> subprocess.CompletedProcess[str]:
        """Send the request and wait for the process to end."""
        process = self._process
        try:
            out, errors = process.communicate(f"{line}\n", TIMEOUT_SECONDS)
        finally:
            self.end()
        return subprocess.CompletedProcess(process.args, process.returncode, out, errors)

    def end(self) -> None:
        """Kill the process if it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


launch: Callable[[Sequence[str]], FreshInterpreter] = FreshInterpreter

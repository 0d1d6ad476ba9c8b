"""Where a fresh Python is started: one place, so that tests need not wait for a thousand imports of PyTorch."""

import subprocess
import sys
from collections.abc import Callable, Sequence

TIMEOUT_SECONDS = 600

Launch = Callable[[Sequence[str]], subprocess.CompletedProcess[str]]
"""Runs a Python with these arguments to its end, in a process that holds nothing of this one's."""


def fresh_interpreter(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What this package always starts: an interpreter of its own."""
    return subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, *arguments], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )


launch: Launch = fresh_interpreter

"""Waiting for what happens elsewhere, however slow the machine is."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 120.0


def wait_until(holds: Callable[[], object]) -> None:
    """Look again and again until something holds, at most :data:`PATIENCE_SECONDS`."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it has not come about"
        time.sleep(0.01)

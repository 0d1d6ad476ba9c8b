"""Seconds of a pass that may have to wait for others."""

import time


class PassClock:
    """Seconds of a pass, without those in which it waited."""

    def __init__(self) -> None:
        self._waited = 0.0
        self._stopped = 0.0

    def __call__(self) -> float:
        """Seconds, from any start."""
        return time.monotonic() - self._waited

    def stop(self) -> None:
        """Begin to wait."""
        self._stopped = time.monotonic()

    def go_on(self) -> None:
        """End to wait."""
        self._waited += time.monotonic() - self._stopped

"""A clock that stops while a pass waits for its next time slice."""

import time


class PassClock:
    """Counts the seconds of a pass without those that it spent waiting."""

    def __init__(self) -> None:
        self._waited = 0.0
        self._stopped = 0.0

    def __call__(self) -> float:
        """Seconds since an arbitrary start."""
        return time.monotonic() - self._waited

    def stop(self) -> None:
        """Stop the clock."""
        self._stopped = time.monotonic()

    def go_on(self) -> None:
        """Restart the clock."""
        self._waited += time.monotonic() - self._stopped

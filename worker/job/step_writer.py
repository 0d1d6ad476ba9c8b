"""Write what a job's process does at the moment, but no more often than a database should be asked to."""

import time
from collections.abc import Callable

from axformer.wire.steps import Step
from worker.job.ledger import Ledger

_LEAST_SECONDS = 0.1
"""Between two writes, whatever the process says; the library reports far less often."""


class StepWriter:
    """Writes the steps of one job; those that come too fast are dropped."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._clock = clock
        self._at = float("-inf")

    def __call__(self, step: Step) -> None:
        """Write a step if it is due."""
        now = self._clock()
        if now - self._at >= _LEAST_SECONDS:
            self._ledger.tell(step)
            self._at = now

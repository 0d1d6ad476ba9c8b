"""The progress of a compression, computed from its trials alone, and the largest length of its trace."""

from collections.abc import Iterable

from axformer.config.compress import CompressConfig
from axformer.methods.progress import Progress
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial

_WITH_TABLE = 2
"""Trials until the first budget is done."""


class BudgetMeter:
    """Counts the trials: the untouched model and the budgets."""

    def __init__(self, dimensions: Dimensions, config: CompressConfig) -> None:
        self._known = longest_trace(dimensions, config)
        self._count = 0
        self._seconds = 0.0
        self._with_table = 0.0
        """Seconds until the first budget was done, whose trial includes the level table."""

    def add(self, trials: Iterable[Trial]) -> None:
        """Take the next trials."""
        for trial in trials:
            self._count += 1
            self._seconds = trial.seconds
            if self._count == _WITH_TABLE:
                self._with_table = trial.seconds

    def progress(self, *, ended: bool = False) -> Progress:
        """The progress so far. The time left is known after the first budget; the level table, which its trial includes, makes
        that estimate too long. After the next one it is the mean time of the budgets without the table."""
        known = self._count if ended else self._known
        budgets = self._count - _WITH_TABLE
        each = None
        if budgets > 0:
            each = (self._seconds - self._with_table) / budgets
        elif budgets == 0 or (ended and self._count):
            each = self._seconds / self._count
        left = None if each is None else each * (known - self._count)
        return Progress(done=self._count, known=known, seconds=self._seconds, seconds_left=left)


def longest_trace(_: Dimensions, config: CompressConfig) -> int:
    """The largest number of trials of a run."""
    return 1 + len(config.budgets)

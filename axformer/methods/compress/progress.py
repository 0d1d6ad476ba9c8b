"""How far a compression is, from its trials alone, and how long its trace can be."""

from collections.abc import Iterable

from axformer.config.compress import CompressConfig
from axformer.methods.progress import Progress
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial


class BudgetMeter:
    """Counts the untouched model and the budgets."""

    def __init__(self, dimensions: Dimensions, config: CompressConfig) -> None:
        self._known = longest_trace(dimensions, config)
        self._count = 0
        self._seconds = 0.0

    def add(self, trials: Iterable[Trial]) -> None:
        """Take the next trials."""
        for trial in trials:
            self._count += 1
            self._seconds = trial.seconds

    def progress(self, *, ended: bool = False) -> Progress:
        """How far it is. The first budget takes the level table with it, so the time that is left is known after it."""
        known = self._count if ended else self._known
        left = (
            self._seconds / self._count * (known - self._count) if self._count > 1 or (ended and self._count) else None
        )
        return Progress(done=self._count, known=known, seconds=self._seconds, seconds_left=left)


def longest_trace(_: Dimensions, config: CompressConfig) -> int:
    """Trials that a run makes at most."""
    return 1 + len(config.budgets)

"""The progress of a run of whole plans, computed from its trials alone, and the largest length of a compression's trace."""

from collections.abc import Iterable

from axformer.config.compress import CompressConfig
from axformer.methods.progress import Progress
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial


class PlanMeter:
    """Counts the trials: the untouched model and the plans."""

    def __init__(self, longest: int) -> None:
        """
        Args:
            longest: the largest number of trials.
        """
        self._known = longest
        self._count = 0
        self._seconds = 0.0

    def add(self, trials: Iterable[Trial]) -> None:
        """Take the next trials."""
        for trial in trials:
            self._count += 1
            self._seconds = trial.seconds

    def progress(self, *, ended: bool = False) -> Progress:
        """The progress so far. The time left is known after the first plan, which includes what all share."""
        known = self._count if ended else self._known
        left = (
            self._seconds / self._count * (known - self._count) if self._count > 1 or (ended and self._count) else None
        )
        return Progress(done=self._count, known=known, seconds=self._seconds, seconds_left=left)


def longest_trace(_: Dimensions, config: CompressConfig) -> int:
    """The largest number of trials of a run."""
    return 1 + len(config.budgets)

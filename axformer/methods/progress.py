"""Progress of a run, and its meter where every trial is of a whole plan."""

from collections.abc import Iterable
from dataclasses import dataclass

from axformer.plan.trial import Trial


@dataclass(frozen=True)
class Progress:
    """How many trials are done, and how many are known so far.

    ``known`` grows when the parts of a block are to be tried too. It falls to ``done`` when a pass stops at its target, and
    before a trade (``tolerance``) it falls by each block that need not be tried again.
    """

    done: int
    known: int
    seconds: float
    seconds_left: float | None
    """Known trials that remain, times the mean seconds of a trial so far; None until one is done."""


_FIRST = 2
"""Trials until the first plan is done."""


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
        self._first_seconds = 0.0
        """Seconds until the first plan was done."""

    def add(self, trials: Iterable[Trial]) -> None:
        """Take the next trials."""
        for trial in trials:
            self._count += 1
            self._seconds = trial.seconds
            if self._count == _FIRST:
                self._first_seconds = trial.seconds

    def progress(self, *, ended: bool = False) -> Progress:
        """The progress so far. The time left is known after the first plan. Its trial includes what all share, such as a level
        table, which makes that estimate too long; after the next plan it is the mean time of those after the first."""
        known = self._count if ended else self._known
        later = self._count - _FIRST
        each = None
        if later > 0:
            each = (self._seconds - self._first_seconds) / later
        elif later == 0 or (ended and self._count):
            each = self._seconds / self._count
        left = None if each is None else each * (known - self._count)
        return Progress(done=self._count, known=known, seconds=self._seconds, seconds_left=left)

"""Progress of a run, and its meter where every trial is of a whole plan. Imports no PyTorch."""

from collections.abc import Iterable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Protocol

from axformer.config import RunConfig
from axformer.plan.elements import Dimensions
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


class Meter(Protocol):
    """What a run's trials alone say about it, at a cost that does not grow with their number."""

    longest: int
    """The largest number of trials of the run."""

    def __init__(self, dimensions: Dimensions, config: Any) -> None:
        """Begin without trials."""

    def add(self, trials: Iterable[Trial]) -> None:
        """Add the next trials."""

    def progress(self, *, ended: bool = False) -> Progress:
        """The progress of the run; its trials alone cannot say that it has ended if it may stop at a target."""

    @property
    def refused_by_safeguard(self) -> int | None:
        """How many trials only the safeguard rejected; None without a safeguard."""


def meter_of(dimensions: Dimensions, config: RunConfig) -> Meter:
    """The meter of a run that has no trials yet."""
    meter: Meter = resolve_name(config.about.meter)(dimensions, config)
    return meter


_FIRST = 2
"""Trials until the first plan is done."""


class PlanMeter:
    """Counts the trials: the untouched model and the plans; see :class:`Meter`."""

    refused_by_safeguard = None

    def __init__(self, dimensions: Dimensions, config: RunConfig) -> None:
        self.longest = config.most_trials(dimensions)
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
        known = self._count if ended else self.longest
        later = self._count - _FIRST
        each = None
        if later > 0:
            each = (self._seconds - self._first_seconds) / later
        elif later == 0 or (ended and self._count):
            each = self._seconds / self._count
        left = None if each is None else each * (known - self._count)
        return Progress(done=self._count, known=known, seconds=self._seconds, seconds_left=left)

"""Store trials while a job runs: in batches, but within about a second, so that viewers see the trace grow."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from axformer.config import RunConfig
from axformer.methods.progress import meter_of
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial, Verdict
from store.repositories import leases
from worker.job.ledger import Ledger
from worker.sandbox.messages import PlanSpeed


@dataclass(eq=False)
class Recorder:
    """Collects the trials of a job, and writes them in batches."""

    ledger: Ledger
    dimensions: Dimensions
    config: RunConfig
    stored: int
    """Number of trials that are already in the database; they are counted and not written again."""
    inputs: Mapping[str, str]
    """Digests of the job's inputs, stored with the progress so that a resumed job can compare them."""
    first_look: str | None
    """One line on the validation data and the untouched model, stored with the progress."""
    speed: Callable[[], PlanSpeed]
    """Estimates the speed of the plan after the trials so far."""
    batch: int
    """Most trials in one write."""
    batch_seconds: float
    """Longest time between two writes while trials arrive."""

    def __post_init__(self) -> None:
        self._meter = meter_of(self.dimensions, self.config)
        self._trials: list[Trial] = []
        self._waiting: list[Trial] = []
        self._written = float("-inf")

    def add(self, trial: Trial) -> None:
        """Add the next trial. Pending trials are written if a batch is due."""
        self._trials.append(trial)
        self._meter.add([trial])
        if len(self._trials) <= self.stored:
            return
        self._waiting.append(trial)
        is_late = time.monotonic() - self._written >= self.batch_seconds
        if is_late or len(self._waiting) >= self.batch:
            self.flush()

    def flush(self) -> None:
        """Write the pending trials."""
        if self._waiting:
            self.ledger.write(leases.add_trials, self._waiting, self._progress())
            self._waiting = []
            self._written = time.monotonic()

    def end(self, kept: int) -> None:
        """Write the pending trials, and progress that says that the run has ended, perhaps early at its target.

        Args:
            kept: the trial whose model is kept.
        """
        self.ledger.write(leases.add_trials, self._waiting, self._progress(ended=True) | {"kept": kept})
        self._waiting = []

    def _progress(self, *, ended: bool = False) -> dict[str, Any]:
        return {
            **asdict(self._meter.progress(ended=ended)),
            **self.speed().model_dump(),
            "base_loss": self._trials[0].loss,
            "min_loss": min(trial.loss for trial in self._trials if trial.verdict in (Verdict.BASE, Verdict.ACCEPT)),
            "dimensions": asdict(self.dimensions),
            "inputs": dict(self.inputs),
            "first_look": self.first_look,
        }

"""Stores trials while a pass runs: many in one transaction, none later than a second, so that watchers see it grow."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from axformer.config import PassConfig
from axformer.methods.axformer.orders import least_loss
from axformer.methods.axformer.progress import ProgressMeter, progress_of
from axformer.methods.axformer.targets import Estimate
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial
from worker.ledger import Ledger


class Recorder:
    """Collects the trials of one pass and writes them in batches."""

    def __init__(
        self,
        ledger: Ledger,
        dimensions: Dimensions,
        config: PassConfig,
        *,
        stored: int,
        inputs: Mapping[str, str],
        first_look: str | None,
        estimate: Callable[[Sequence[Trial]], Estimate],
        batch: int,
        batch_seconds: float,
    ) -> None:
        """Start to record.

        Args:
            ledger: where to.
            dimensions: of the model.
            config: the knobs of the pass.
            stored: trials that are in the database already; they are counted and not written again.
            inputs: digests of what the pass works on, kept with the progress so that a resumed pass can compare them.
            first_look: the data that decides and the untouched model on it, in words; kept with the progress, too.
            estimate: what speed the plan of the trials so far promises.
            batch: most trials of one write.
            batch_seconds: longest time between two writes while trials come in.
        """
        self._ledger = ledger
        self._dimensions = dimensions
        self._stored = stored
        self._inputs = dict(inputs)
        self._first_look = first_look
        self._known_at_first = progress_of([], dimensions, config).known
        self._meter = ProgressMeter(dimensions, config)
        self._estimate = estimate
        self._batch = batch
        self._batch_seconds = batch_seconds
        self._trials: list[Trial] = []
        self._waiting: list[Trial] = []
        self._written = float("-inf")

    def add(self, trial: Trial) -> None:
        """Take the next trial, and write what waits if it is time."""
        self._trials.append(trial)
        self._meter.add([trial])
        if trial.seq < self._stored:
            return
        self._waiting.append(trial)
        is_late = time.monotonic() - self._written >= self._batch_seconds
        if is_late or len(self._waiting) >= self._batch:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            self._ledger.record(self._waiting, self._progress())
            self._waiting = []
            self._written = time.monotonic()

    def end(self) -> None:
        """Write what waits, and that the pass is over, which at a target is before all that was known to come."""
        self._ledger.record(self._waiting, self._progress(ended=True))
        self._waiting = []

    def _progress(self, *, ended: bool = False) -> dict[str, Any]:
        return {
            **asdict(self._meter.progress(ended=ended)),
            **asdict(self._estimate(self._trials)),
            "base_loss": self._trials[0].loss,
            "min_loss": least_loss(self._trials),
            "known_at_first": self._known_at_first,
            "dimensions": asdict(self._dimensions),
            "inputs": self._inputs,
            "first_look": self._first_look,
        }

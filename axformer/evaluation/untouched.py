"""The untouched model on the samples that decide, computed once: the look before a pass, the base of the pass and the report
ask for it.

The evaluator of the trials computes it, and is kept with all that it remembers until the pass takes it. So the base and the
report have the same bits with a look before the pass and without.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator
from axformer.evaluation.build import Evaluators, make_evaluators
from axformer.evaluation.fitting import Fitting
from axformer.evaluation.plain import Predictions, predict
from axformer.evaluation.recording import Recording
from axformer.evaluation.screen import Screen
from axformer.intake.checkpoint import Checkpoint
from axformer.plan.plan import Plan


class Untouched:
    """The evaluators of a run, which measure the untouched model first."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        samples: Samples,
        config: RunConfig,
        shards: int,
        fitting: Fitting | None = None,
    ) -> None:
        """
        Args:
            samples: those that decide.
            shards: processes that share them.
            fitting: gives the weights that plans leave other values; None where they stay as they are.
        """
        self._checkpoint = checkpoint
        self._samples = samples
        self._config = config
        self._shards = shards
        self._fitting = fitting
        self._kept: Evaluators | None = None
        self._predictions: Predictions | None = None
        self.recording = Recording(checkpoint.task, samples)
        """What the model that was measured last makes of the samples, where that is recorded."""

    def predictions(self, *, keep: bool) -> Predictions:
        """What the untouched model makes of the samples, in float32.

        Args:
            keep: whether a pass is to come. Then the evaluators that measure this are kept for it.
        """
        if self._predictions is None:
            self._predictions = self._measured(keep=keep)
        return self._predictions

    def _measured(self, *, keep: bool) -> Predictions:
        """By the evaluator of the trials, where that computes in float32 and in this process."""
        if self._shards > 1 or not self._config.evaluates_in_float32:
            return predict(self._checkpoint.model, self._checkpoint.task, self._samples)
        made = self._make()
        self.recording.is_on = True
        with made.at_work:
            made.exact.losses(Plan.full(self._checkpoint.dimensions))
        if keep:
            self._kept = made
        return self.recording.predictions

    @contextmanager
    def evaluators(self, *, recorded: bool) -> Iterator[tuple[Evaluator, Screen | None]]:
        """What measures the trials of a pass, and what looks at them first in low precision where the knobs ask for that.

        Args:
            recorded: whether :attr:`recording` goes on.
        """
        made, self._kept = self._kept or self._make(), None
        self.recording.is_on = recorded
        with made.at_work:
            yield made.exact, made.screen

    def _make(self) -> Evaluators:
        return make_evaluators(
            self._checkpoint, self._samples, self._config, self._shards, self.recording, self._fitting
        )

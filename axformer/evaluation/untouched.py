"""The untouched model on the deciding samples, measured once: for the look before a pass, the base trial and the report.

It is measured by the evaluator of the trials, which is kept with its cache until the pass uses it. So the base trial and the
report are bit for bit the same with and without a check before the pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator
from axformer.evaluation.build import make_evaluator
from axformer.evaluation.fitting import Fitting
from axformer.intake.checkpoint import Checkpoint
from axformer.plan.plan import Plan
from axformer.scores.measured import Measured, Recording, measure


class Untouched:
    """The evaluator of a run, which measures the untouched model first."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        samples: Samples,
        config: RunConfig,
        fitting: Fitting | None = None,
    ) -> None:
        """
        Args:
            samples: the deciding samples.
            fitting: fits the remaining weights of plans; None to leave them as they are.
        """
        self._checkpoint = checkpoint
        self._samples = samples
        self._config = config
        self._fitting = fitting
        self._kept: Evaluator | None = None
        self._measured: Measured | None = None
        self.recording = Recording(checkpoint.task, samples)
        """What the model that was measured last makes of the samples, if it is recorded."""

    def measured(self, *, keep: bool) -> Measured:
        """The untouched model measured in float32.

        Args:
            keep: whether a pass follows, for which the evaluator is then kept.
        """
        if self._measured is None:
            self._measured = self._measure(keep=keep)
        return self._measured

    def _measure(self, *, keep: bool) -> Measured:
        """Measure with the evaluator of the trials, if it computes in float32."""
        if not self._config.evaluates_in_float32:
            return measure(self._checkpoint.model, self._checkpoint.task, self._samples)
        evaluator = self._make()
        self.recording.is_on = True
        with evaluator:
            evaluator.losses(Plan.full(self._checkpoint.dimensions))
        if keep:
            self._kept = evaluator
        return self.recording.measured()

    @contextmanager
    def evaluator(self, *, recorded: bool) -> Iterator[Evaluator]:
        """The evaluator of a pass's trials.

        Args:
            recorded: whether :attr:`recording` continues.
        """
        evaluator, self._kept = self._kept or self._make(), None
        self.recording.is_on = recorded
        with evaluator:
            yield evaluator

    def _make(self) -> Evaluator:
        return make_evaluator(self._checkpoint, self._samples, self._config, self.recording, self._fitting)

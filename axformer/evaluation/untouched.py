"""The untouched model on the deciding samples, measured once: for the look before a pass, the base trial and the report.

It is measured by the evaluator of the trials, which is kept with its cache until the pass uses it. So the base trial and the
report are bit for bit the same with and without a check before the pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator, Fitting
from axformer.evaluation.budget import cache_budget
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.evaluation.threads import ThreadedEvaluator, threads_for
from axformer.intake.checkpoint import Checkpoint
from axformer.plan.plan import Plan
from axformer.scores.measured import Measured, Recording, measure
from axformer.scores.temperature import LossCurves
from axformer.tasks.base import Losses


def make_evaluator(
    checkpoint: Checkpoint,
    samples: Samples,
    config: RunConfig,
    task: Losses | None = None,
    fitting: Fitting | None = None,
) -> Evaluator:
    """Make the evaluator of a pass, which is used as a context manager.

    Args:
        task: computes the losses: a recording of the checkpoint's task, or None for the task itself.
        fitting: fits the remaining weights; None to leave them as they are.
    """
    model, architecture, device = checkpoint.model, checkpoint.architecture, checkpoint.model.device
    budget, plan = cache_budget(config.cache_budget, str(device)), Plan.full(checkpoint.dimensions)
    given = model, architecture, task or checkpoint.task, samples, plan
    cores = torch.get_num_threads()
    threads = threads_for(device, cores)
    if threads == 1:
        return PrefixEvaluator(*given, budget=budget, fitting=fitting)
    return ThreadedEvaluator(*given, budget=budget, threads=threads, cores=cores, fitting=fitting)


class Untouched:
    """The evaluator of a run, which measures the untouched model first."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        samples: Samples,
        config: RunConfig,
        fitting: Fitting | None = None,
    ) -> None:
        self._checkpoint = checkpoint
        self._samples = samples
        self._config = config
        self._fitting = fitting
        self._kept: Evaluator | None = None
        self._measured: Measured | None = None
        curves = LossCurves(checkpoint.task, samples) if config.needs.temperatures else None
        self.recording = Recording(checkpoint.task, samples, curves)
        """What the model that was measured last makes of the samples, if it is recorded."""

    def measured(self, *, keep: bool) -> Measured:
        """What the untouched model makes of the samples.

        Args:
            keep: whether a pass follows, for which the evaluator is then kept.
        """
        if self._measured is None:
            self._measured = self._measure(keep=keep)
        return self._measured

    def _measure(self, *, keep: bool) -> Measured:
        """Measure with the evaluator of the trials, if these are of single elements."""
        if self._config.about.of_plans:
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

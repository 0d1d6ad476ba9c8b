"""How far the metric may fall: ``within_points``, in a trade on the rows that decide, and reliably on those that confirm."""

from collections.abc import Sequence
from itertools import takewhile

import numpy as np
from torch import Tensor

from axformer.data.batches import Samples
from axformer.evaluation.recording import Recording
from axformer.reporting.confidence import CONFIDENCE, bootstrap, first_metric
from axformer.reporting.scoring import figures_of, table_of
from axformer.tasks.base import Task

_POINT = 0.01
_ROUNDING = 1e-9
"""What a difference of two metrics may be off."""


def is_within(fall: float, points: float) -> bool:
    """Whether a metric that fell so far did not fall more than so many points (hundredths)."""
    return fall <= points * _POINT + _ROUNDING


def reliably_within(tables: Sequence[np.ndarray], task: Task, points: float) -> int:
    """The place of the last model before the first that may have fallen further than so many points.

    Model by model it is tested, by the end of a one-sided paired bootstrap interval, whether the task's first metric fell no
    further; the first that fails ends the sequence. Of tests in a fixed sequence each may have the whole 5 % (Maurer, Hothorn
    and Lehmacher, 1995; for models Angelopoulos et al., Learn then Test, 2021): so often a model is kept that did fall further,
    however many there are. Bootstrap intervals of few samples are too short, which makes that an approximation.

    Args:
        tables: of each model on the same samples, the untouched one first (:func:`axformer.reporting.scoring.table_of`).
        task: of the checkpoint.
        points: hundredths of the metric.
    """
    metric = first_metric(figures_of(tables[0], task))

    def drawn(table: np.ndarray) -> np.ndarray:
        return bootstrap(table, lambda rows: {metric: figures_of(rows, task)[metric]})[metric]

    untouched = drawn(tables[0])
    falls = (float(np.quantile(untouched - drawn(table), CONFIDENCE)) for table in tables[1:])
    return len(list(takewhile(lambda fall: is_within(fall, points), falls)))


class MetricLimit:
    """Tells of a trial that was measured to the end whether the metric is still within the points.

    The loss cannot tell: that of a model which is too sure of itself falls when it answers always the same, with the shares
    of the classes for its probabilities.
    """

    def __init__(self, task: Task, samples: Samples, points: float) -> None:
        """
        Args:
            task: of the checkpoint.
            samples: those that decide.
            points: how far the metric may fall.
        """
        self._task = task
        self._samples = samples
        self._points = points
        self._untouched: float | None = None
        self.recording = Recording(task, len(samples.sample_of_row))
        """What the evaluator must take for the task."""

    def begin(self, losses: Tensor) -> None:
        """Learn the untouched model's metric, just after it was measured.

        Args:
            losses: of its samples, shape (samples,).
        """
        self._untouched = self._metric(losses)

    def allows(self, losses: Tensor, share: float) -> bool:
        """Whether the model that was just measured is within this share of the points.

        Args:
            losses: of its samples, shape (samples,).
            share: of the points; 1 is all of them.
        """
        assert self._untouched is not None, "the untouched model is measured first"
        return is_within(self._untouched - self._metric(losses), share * self._points)

    def _metric(self, losses: Tensor) -> float:
        figures = figures_of(table_of(losses, self.recording.answers, self._task, self._samples), self._task)
        return figures[first_metric(figures)]

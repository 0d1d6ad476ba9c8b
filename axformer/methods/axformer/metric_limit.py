"""How far the metric may fall in a trade, on the rows that decide (``tolerance`` with ``within_points``)."""

from torch import Tensor

from axformer.data.batches import Samples
from axformer.evaluation.recording import Recording
from axformer.scores.confidence import first_metric
from axformer.scores.scoring import figures_of, table_of
from axformer.scores.within_points import is_within
from axformer.tasks.base import Task


class MetricLimit:
    """Tells of a trial that was measured to the end whether the metric is still within the points.

    The loss cannot tell: that of a model which is too sure of itself falls when it answers always the same, with the shares
    of the classes for its probabilities.
    """

    def __init__(self, task: Task, samples: Samples, points: float, recording: Recording) -> None:
        """
        Args:
            task: of the checkpoint.
            samples: those that decide.
            points: how far the metric may fall.
            recording: that the evaluator has for its task.
        """
        self._task = task
        self._samples = samples
        self._points = points
        self._untouched: float | None = None
        self._recording = recording

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
        figures = figures_of(table_of(losses, self._recording.answers, self._task, self._samples), self._task)
        return figures[first_metric(figures)]

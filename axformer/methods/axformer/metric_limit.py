"""The limit on the metric during a trade, on the deciding rows (``tolerance`` with ``within_points``)."""

from torch import Tensor

from axformer.scores.measured import Recording
from axformer.scores.within_points import is_within
from axformer.wire.metrics import first_metric


class MetricLimit:
    """Checks whether the metric of a fully measured trial is still within the points.

    The loss cannot show that. An overconfident model lowers its loss when it always answers the same, with the class
    frequencies as probabilities.
    """

    def __init__(self, points: float, recording: Recording) -> None:
        """
        Args:
            points: how far the metric may fall.
            recording: that the evaluator of the deciding samples has for its task.
        """
        self._points = points
        self._untouched: float | None = None
        self._recording = recording

    def begin(self, losses: Tensor) -> None:
        """Store the untouched model's metric. Call this right after measuring that model.

        Args:
            losses: its per-sample losses, shape (samples,).
        """
        self._untouched = self._metric(losses)

    def allows(self, losses: Tensor, share: float) -> bool:
        """Whether the metric of the model that was just measured fell by at most a share of the points.

        Args:
            losses: its per-sample losses, shape (samples,).
            share: share of the points that it may lose; 1 is all of them.
        """
        assert self._untouched is not None, "the untouched model is measured first"
        return is_within(self._untouched - self._metric(losses), share * self._points)

    def _metric(self, losses: Tensor) -> float:
        figures = self._recording.measured(losses).figures
        return figures[first_metric(figures)]

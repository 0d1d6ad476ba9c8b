"""How far the metric may fall: ``within_points``, in a trade on the rows that decide, and reliably on those that confirm."""

from collections.abc import Callable, Sequence
from itertools import takewhile

import numpy as np
from torch import Tensor

from axformer.data.batches import Samples
from axformer.evaluation.recording import Recording
from axformer.scores.confidence import CONFIDENCE, bootstrap, fell_no_further, fewest_samples, first_metric
from axformer.scores.scoring import figures_of, table_of
from axformer.tasks.base import Task
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.question_answering import QuestionAnswering

POINT = 0.01
"""What a point of a metric is."""
_SHARES_RIGHT = frozenset(
    task.name
    for task in (BinaryClassification, Classification, MultiLabelClassification, MultipleChoice, QuestionAnswering)
)
_ROUNDING = 1e-9
"""What a difference of two metrics may be off."""


def is_within(fall: float, points: float) -> bool:
    """Whether a metric that fell so far did not fall more than so many points (hundredths)."""
    return fall <= points * POINT + _ROUNDING


def is_share_right(task: str) -> bool:
    """Whether the first metric of the task of this name is the share of samples that are answered rightly."""
    return task in _SHARES_RIGHT


def too_few_rows(task: str, rows: int, points: float) -> str | None:
    """What to say where so many confirming rows can show of no model that it fell by less than so many points; else null."""
    if not is_share_right(task) or fell_no_further(0, 0, rows, points * POINT):
        return None
    fewest = fewest_samples(points * POINT)
    needed = "allow more points" if fewest is None else f"confirm by at least {fewest:,}, or allow more points"
    return (
        f"within_points={points:g}: {rows:,} confirming rows cannot show so small a fall, even where no answer changes, so the "
        f"untouched model will be kept; {needed}"
    )


def reliably_within(tables: Sequence[np.ndarray], task: Task, points: float) -> int:
    """The place of the last model before the first that may have fallen further than so many points.

    Model by model it is asked whether the task's first metric fell no further, and the first that may have ends the sequence.
    Of tests in a fixed sequence each may have the whole 5 %, however many there are (Maurer, Hothorn and Lehmacher, 1995; for
    models Angelopoulos et al., Learn then Test, 2021). Where the metric is the share of right answers, Tango's score test is
    asked, whose level is near 5 %. Elsewhere it is the end of a one-sided paired bootstrap interval. Such intervals are far too
    short on few samples, so this promises nothing.

    Args:
        tables: of each model on the same samples, the untouched one first (:func:`axformer.scores.scoring.table_of`).
        task: of the checkpoint.
        points: hundredths of the metric.
    """
    is_within_points = _score_test if is_share_right(task.name) else _bootstrap_interval
    return len(list(takewhile(is_within_points(tables[0], task, points), tables[1:])))


def _score_test(untouched: np.ndarray, task: Task, points: float) -> Callable[[np.ndarray], bool]:
    before = _right(untouched, task)

    def is_reliably_within(table: np.ndarray) -> bool:
        after = _right(table, task)
        gained, lost = int((~before & after).sum()), int((before & ~after).sum())
        return fell_no_further(gained, lost, len(before), points * POINT)

    return is_reliably_within


def _right(table: np.ndarray, task: Task) -> np.ndarray:
    right = task.correct(table[:, 1:])
    assert right is not None, f"{task.name} knows right and wrong"
    return right


def _bootstrap_interval(untouched: np.ndarray, task: Task, points: float) -> Callable[[np.ndarray], bool]:
    metric = first_metric(figures_of(untouched, task))

    def drawn(table: np.ndarray) -> np.ndarray:
        return bootstrap(table, lambda rows: {metric: figures_of(rows, task)[metric]})[metric]

    before = drawn(untouched)
    return lambda table: is_within(float(np.quantile(before - drawn(table), CONFIDENCE)), points)


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

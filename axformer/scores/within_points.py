"""The limit ``within_points`` on the fall of the metric, and whether there are enough rows to certify it."""

from axformer.scores.planning import POWER, USUAL_RATE, fewest_rows, rows_needed, smallest_margin
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.question_answering import QuestionAnswering

POINT = 0.01
"""One point of a metric."""
_SHARES_RIGHT = frozenset(
    task.name
    for task in (BinaryClassification, Classification, MultiLabelClassification, MultipleChoice, QuestionAnswering)
)
_ROUNDING = 1e-9
"""Rounding error of a difference of two metrics."""


def is_within(fall: float, points: float) -> bool:
    """Whether a metric fell by at most some points (hundredths)."""
    return fall <= points * POINT + _ROUNDING


def is_share_right(task: str) -> bool:
    """Whether a task's first metric is the share of samples answered correctly."""
    return task in _SHARES_RIGHT


def too_few_rows(task: str, rows: int, points: float) -> str | None:
    """A warning if the confirming rows are unlikely to certify the points; otherwise None.

    It covers only tasks whose first metric is a share of correct answers.
    """
    margin = points * POINT
    can_carry = smallest_margin(rows, USUAL_RATE, USUAL_RATE)
    if not is_share_right(task) or can_carry <= margin + _ROUNDING:
        return None
    start, fewest = f"within_points={points:g}: {rows:,} confirming rows", fewest_rows(margin)
    offered = f", or ask for {can_carry / POINT:.2g} points, which these rows can certify"
    if fewest is None:
        return f"{start} cannot show so small a fall, as no number can, so the untouched model will be kept; allow more points"
    needed = rows_needed(points, USUAL_RATE, USUAL_RATE)
    confirm = "" if needed is None else f"; confirm by about {needed:,}{offered}"
    if rows < fewest:
        return (
            f"{start} cannot show so small a fall, even where no answer changes (that takes {fewest:,}), so the untouched "
            f"model will be kept{confirm}"
        )
    usual = f"where {USUAL_RATE:.0%} of the answers are lost and as many gained"
    return f"{start} certify it in less than {POWER:.0%} of cases {usual}{confirm}"

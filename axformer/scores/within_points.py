"""The limit ``within_points`` on the fall of the metric, and whether there are enough rows to certify it."""

from axformer.scores.paired_tests import FEWEST_ROWS
from axformer.scores.planning import POINT, few_rows_told
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.question_answering import QuestionAnswering
from axformer.tasks.token_classification import TokenClassification

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

    For tasks whose first metric is a share of right answers, it says how many rows are likely to. A metric that is no mean over
    rows takes a fixed number of rows; a tagger's is not covered.
    """
    if is_share_right(task):
        return few_rows_told(rows, points)
    if task == TokenClassification.name or rows >= FEWEST_ROWS:
        return None
    return (
        f"within_points={points:g}: {rows} confirming rows are too few to certify a metric that is no mean over rows (that "
        f"takes {FEWEST_ROWS}), so the untouched model will be kept; give more rows, or a larger share with confirm"
    )

"""Whether a form may be advised: shown to have lost no more than was allowed, and better than guessing.

Computed from the content of a ``report.json`` alone. No PyTorch.
"""

from collections.abc import Mapping
from typing import Any

from axformer.scores.paired_tests import ALPHA, FEWEST_ROWS, exact_p_value
from axformer.scores.planning import POINT, fewest_rows, rows_needed
from axformer.wire.metrics import LOWER_IS_BETTER
from axformer.wire.verdicts import JudgedRows, Judgement, Standing

UNLABELLED = "unlabelled"
"""The name of rows that the untouched model's own answers judge, so that all answers that change count as lost."""
_ROUNDING = 1e-9
"""Rounding error of a difference of two metrics."""


UNJUDGED = Judgement(standing=Standing.UNKNOWN)
USELESS = (Standing.WORSE, Standing.GUESSING, Standing.FEWER_CLASSES)
"""What makes a model that reached its target one of no use."""


def judgement_of(form: Mapping[str, Any], base: Mapping[str, Any], metric: str, judged: JudgedRows) -> Judgement:
    """Judge a form.

    Args:
        form: its part of a report.
        base: the part of the untouched model.
        metric: the task's first metric.
        judged: by what.
    """
    cost = form.get("cost")
    if judged.data is None or cost is None:
        return UNJUDGED
    answered, answered_before = form.get("classes_answered"), base.get("classes_answered")
    if answered is not None and answered_before is not None and answered < answered_before:
        return Judgement(standing=Standing.FEWER_CLASSES, classes=f"{answered} of {answered_before}")
    value, before = form[judged.data][metric], base[judged.data][metric]
    if judged.guess is not None and value <= judged.guess + _ROUNDING:
        return Judgement(standing=Standing.GUESSING)
    return _by_change(form, cost, metric, before, judged)


def _by_change(
    form: Mapping[str, Any], cost: Mapping[str, Any], metric: str, before: float, judged: JudgedRows
) -> Judgement:
    is_loss = metric in LOWER_IS_BETTER
    limit = judged.points * POINT * (before if is_loss else 1.0)
    difference = cost["differences"][metric]
    falls = sorted((1.0 if is_loss else -1.0) * end for end in difference["interval"])
    p_value = form.get("p_value")
    is_certified = p_value is not None and p_value <= ALPHA
    knows_better = (
        is_certified and judged.data == UNLABELLED
    )  # where each changed answer counts as lost, whatever labels say
    if falls[0] > limit + _ROUNDING and not knows_better:
        return Judgement(standing=Standing.WORSE)
    if is_certified:
        return Judgement(standing=Standing.SHOWN, is_certified=True)
    test = cost.get("mcnemar") if judged.is_share else None
    answers = None if test is None else (test["gained"], test["lost"])
    is_wide = falls[0] < falls[1]
    if falls[1] <= limit + _ROUNDING and (_has_enough_rows(answers, judged.rows, limit) if judged.rows else is_wide):
        return Judgement(standing=Standing.SHOWN)
    return Judgement(standing=Standing.NOT_SHOWN, more_rows=_more_rows(answers, judged))


def _has_enough_rows(answers: tuple[int, int] | None, rows: int, limit: float) -> bool:
    """Whether an interval over so few rows can be relied on. A bootstrap's is a point where no answer changed, however few rows
    there are; the exact test knows better."""
    if answers is None:
        return rows >= FEWEST_ROWS
    return limit > 0 and exact_p_value(*answers, rows, limit) <= ALPHA


def _more_rows(answers: tuple[int, int] | None, judged: JudgedRows) -> int | None:
    if answers is None:
        return None
    gained, lost = answers
    needed = rows_needed(judged.points, lost / judged.rows, gained / judged.rows)
    least = fewest_rows(judged.points * POINT)
    if needed is None or least is None:
        return None
    return max(needed, least) - judged.rows if max(needed, least) > judged.rows else None

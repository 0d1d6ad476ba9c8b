"""Whether a finished model is better, by data that did not decide; ``report.json`` keeps the verdict with its words."""

from collections.abc import Mapping
from typing import Literal

from axformer.reporting.rendering import passage
from axformer.reporting.sources import OPTIMISM
from axformer.scores.confidence import CONFIDENCE
from axformer.scores.within_points import is_share_right
from axformer.wire.report import Comparison, Difference, Finding, Judgement, Report, Scores

_PLACES: dict[Literal["test", "confirming"], str] = {"test": "held-out data", "confirming": "the rows that confirmed"}
"""What did not decide, the better judge first."""
_HEADS = {Judgement.GAIN: "A gain", Judgement.NO_RELIABLE_GAIN: "No reliable gain", Judgement.LOSS: "A loss"}
_WORSE_ANSWERS = "Worse answers"
_LOWER_IS_BETTER = frozenset(("perplexity",))
"""Metrics that rise where a model becomes worse."""
_ROUNDING = 1e-5
"""As a share of the loss before: by this much the same model may differ, where its parts are multiplied in another order."""
_CONFIDENCE = f"{CONFIDENCE:.0%}"


def limit_of(report: Report) -> float | None:
    """How many times the untouched model's loss the result may have; null where the loss may only fall."""
    tolerance = report.config.get("tolerance")
    return None if tolerance is None else 1 + float(tolerance)


def finding_of(
    task: str, base: Scores, pruned: Scores, comparison: Mapping[str, Comparison | None], *, in_int8: bool = False
) -> Finding:
    """The verdict over the finished model on data that did not decide, where there was some.

    Args:
        task: its name in reports.
        base: the model before the pass.
        pruned: the finished one.
        comparison: of the two, by the name of the data.
        in_int8: both were computed in int8, as the pass decided; said with the figures.
    """
    for data, place in _PLACES.items():
        found, before, after = comparison.get(data), getattr(base, data), getattr(pruned, data)
        if found is not None:
            where = f"{place} (both models in int8)" if in_int8 else place
            return _measured(task, data, where, before["loss"], after["loss"], found)
    return Finding(
        data=None,
        verdict=Judgement.NOT_MEASURED,
        sentence=passage("not_measured"),
        advice=passage("optimism", OPTIMISM),
        answers="",
    )


def _measured(
    task: str, data: Literal["test", "confirming"], place: str, before: float, after: float, comparison: Comparison
) -> Finding:
    change = comparison.differences["loss"]
    verdict, is_rounding = judged(task, before, comparison), _is_rounding(before, change)
    head = _WORSE_ANSWERS if verdict is Judgement.LOSS and change.interval[0] <= 0 else _HEADS[verdict]
    return Finding(
        data=data,
        verdict=verdict,
        sentence=passage("sentence", head, place, before, after, change.interval, _CONFIDENCE, is_rounding),
        advice=passage("advice", verdict, is_rounding, data == "confirming"),
        answers=_answers(task, comparison, place),
    )


def judged(task: str, before: float, comparison: Comparison) -> Judgement:
    """What both models on data that did not decide are called, given the loss before.

    The loss alone can speak for the model, since it is what a pass lowers. Both can speak against it: a pass may lower the loss
    of answers that are wrong anyway. Where the task's first metric is another than the share of right answers, it speaks too.
    """
    change = comparison.differences["loss"]
    low, high = change.interval
    if _answers_are_worse(comparison) or _metric_that_is_worse(task, comparison):
        return Judgement.LOSS
    if low <= 0 <= high or _is_rounding(before, change):
        return Judgement.NO_RELIABLE_GAIN
    return Judgement.GAIN if high < 0 else Judgement.LOSS


def _answers_are_worse(comparison: Comparison) -> bool:
    test = comparison.mcnemar
    return test is not None and test.lost > test.gained and test.p_value <= 1 - CONFIDENCE


def _metric_that_is_worse(task: str, comparison: Comparison) -> str | None:
    """The first metric of a task that McNemar's test does not know, where its whole interval says that it became worse."""
    if is_share_right(task):
        return None
    metric = next(name for name in comparison.differences if name != "loss")
    low, high = comparison.differences[metric].interval
    return metric if (low > 0 if metric in _LOWER_IS_BETTER else high < 0) else None


def _is_rounding(before: float, change: Difference) -> bool:
    return max(map(abs, change.interval)) <= _ROUNDING * before


def _answers(task: str, comparison: Comparison, place: str) -> str:
    """What answers and metric say beside the loss."""
    told, test, metric = [], comparison.mcnemar, _metric_that_is_worse(task, comparison)
    if test is not None:
        is_chance = test.p_value > 1 - CONFIDENCE
        told.append(passage("answers", test, place, is_chance, _answers_are_worse(comparison)))
    if metric is not None:
        interval = comparison.differences[metric].interval
        name, has_risen = metric.replace("_", " "), metric in _LOWER_IS_BETTER
        told.append(passage("worse_metric", name, place, has_risen, interval, _CONFIDENCE))
    return " ".join(told)

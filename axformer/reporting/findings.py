"""The finding: whether the finished model is better on rows that did not decide. ``report.json`` holds verdict and text."""

from collections.abc import Mapping
from typing import Literal

from axformer.reporting.rendering import passage
from axformer.scores.confidence import CONFIDENCE
from axformer.scores.task_tests import is_share_right, is_within
from axformer.wire.metrics import EMBEDDING, LOWER_IS_BETTER, OLD_INDEX, PEARSON, first_metric, in_words, judging_metric
from axformer.wire.report import Comparison, Difference, Report, Scores
from axformer.wire.verdicts import Finding, FindingVerdict

_PLACES: dict[Literal["test", "confirming"], str] = {"test": "held-out data", "confirming": "the rows that confirmed"}
"""Data that did not decide, the less biased first."""
_HEADS = {
    FindingVerdict.GAIN: "Better",
    FindingVerdict.NO_RELIABLE_GAIN: "No reliable difference",
    FindingVerdict.WITHIN_LIMIT: "Within your limit",
    FindingVerdict.AT_A_COST: "At a cost",
    FindingVerdict.LOSS: "Worse",
}
_WORSE_ANSWERS = "Worse answers"
_ROUNDING = 1e-5
"""Relative change of the loss that a different order of multiplication alone may cause."""
_CONFIDENCE = f"{CONFIDENCE:.0%}"


def limit_of(report: Report) -> float | None:
    """The limit of the result's loss as a multiple of the untouched model's; None if the loss may only fall."""
    tolerance = report.config.get("tolerance")
    return None if tolerance is None else 1 + float(tolerance)


def finding_of(
    task: str,
    base: Scores,
    pruned: Scores,
    comparison: Mapping[str, Comparison | None],
    *,
    points: float | None = None,
    expects_cost: bool = False,
    is_constant: bool = False,
) -> Finding:
    """Judge the finished model on rows that did not decide.

    Args:
        task: the task's name in reports.
        base: scores of the untouched model.
        pruned: scores of the finished model.
        comparison: the comparison of the two by data set.
        points: the points of the first metric that the model was allowed to lose; None if nothing was allowed.
        expects_cost: whether a size or a speed was asked for, whatever it costs; the text then says what it cost.
        is_constant: whether the finished model, and not the untouched one, gives every input the same answer. It is of no use
            then, whatever its loss and its accuracy: a constant answer is the largest gain of Nagarajan et al., 2022 (WNLI).
    """
    for data, place in _PLACES.items():
        of_data, before, after = comparison.get(data), getattr(base, data), getattr(pruned, data)
        if of_data is not None:
            found = _measured(task, data, place, before["loss"], after["loss"], of_data, has_limit=points is not None)
            if is_constant:
                sentence = passage("constant", place, before["loss"], after["loss"])
                return found.model_copy(update={"verdict": FindingVerdict.LOSS, "sentence": sentence, "advice": ""})
            if expects_cost:
                return _at_a_cost(found, place, of_data)
            return found if points is None else _within(found, place, points, of_data)
    if pruned.unlabelled is not None:
        metric = first_metric(pruned.unlabelled)
        sentence = passage("no_labels", pruned.unlabelled[metric], metric == PEARSON)
        return Finding(data=None, verdict=FindingVerdict.NOT_MEASURED, sentence=sentence, advice="", answers="")
    return Finding(
        data=None,
        verdict=FindingVerdict.NOT_MEASURED,
        sentence=passage("not_measured"),
        advice=passage("measure_it"),
        answers="",
    )


def _measured(
    task: str,
    data: Literal["test", "confirming"],
    place: str,
    before: float,
    after: float,
    comparison: Comparison,
    *,
    has_limit: bool,
) -> Finding:
    change = comparison.differences["loss"]
    verdict, is_rounding = judged(task, data, before, comparison), _is_rounding(before, change)
    head = _WORSE_ANSWERS if verdict is FindingVerdict.LOSS and change.interval[0] <= 0 else _HEADS[verdict]
    return Finding(
        data=data,
        verdict=verdict,
        sentence=passage(
            "sentence",
            *(head, place, before, after, change.interval, _CONFIDENCE, is_rounding),
            comparison.tempered if _is_doubt(comparison) else None,
        ),
        advice=passage("advice", verdict, is_rounding, data == "confirming", has_limit),
        answers=_answers(task, data, comparison, place),
    )


def _at_a_cost(found: Finding, place: str, comparison: Comparison) -> Finding:
    """The finding where a size or a speed was asked for: worse beyond noise is its price, and no failure."""
    verdict = FindingVerdict.AT_A_COST if found.verdict is FindingVerdict.LOSS else found.verdict
    advice = passage("advice", verdict, False, found.data == "confirming")
    return found.model_copy(
        update={"verdict": verdict, "sentence": _cost(found.data or "", place, comparison), "advice": advice}
    )


def _cost(data: str, place: str, comparison: Comparison) -> str:
    """What a size or a speed cost, in points of the first metric; a perplexity is no share, and has none."""
    name = judging_metric(comparison.differences, data)
    change, loss = comparison.differences[name], comparison.differences["loss"]
    scale, unit = (1, "") if name in LOWER_IS_BETTER else (100, " points")
    figures = [f"{scale * value:+.2f}" for value in (change.value, *change.interval)]
    return passage("cost", in_words(name), place, figures, unit, loss.value, _CONFIDENCE)


def _within(found: Finding, place: str, points: float, comparison: Comparison) -> Finding:
    """The finding in the light of what was allowed: a loss within the limit is what was wished for."""
    if found.verdict is not FindingVerdict.LOSS:
        return found
    metric = judging_metric(comparison.differences, found.data or "")
    fall = comparison.differences[metric].value * (1 if metric in LOWER_IS_BETTER else -1)
    if not is_within(fall, points):
        return found
    return found.model_copy(
        update={
            "verdict": FindingVerdict.WITHIN_LIMIT,
            "sentence": passage(
                "within_limit",
                in_words(metric),
                place,
                100 * fall,
                points,
                comparison.differences["loss"].value,
            ),
            "advice": passage("advice", FindingVerdict.WITHIN_LIMIT, False, found.data == "confirming"),
        }
    )


def judged(task: str, data: str, before: float, comparison: Comparison) -> FindingVerdict:
    """The verdict on a comparison, given the untouched model's loss.

    Only a lower loss counts as a gain, since the loss is what a pass lowers, and only if it is also lower with each model at
    its own best temperature: an overconfident model lowers it by doubt alone. Both a higher loss and worse answers count as a
    loss, because a pass may lower the loss of answers that stay wrong. If the task's first metric is not a share of correct
    answers, a worse metric counts as a loss too.
    """
    change = comparison.differences["loss"]
    low, high = change.interval
    if _answers_are_worse(comparison) or _metric_that_is_worse(task, data, comparison):
        return FindingVerdict.LOSS
    if low <= 0 <= high or _is_rounding(before, change):
        return FindingVerdict.NO_RELIABLE_GAIN
    if low > 0:
        return FindingVerdict.LOSS
    return FindingVerdict.NO_RELIABLE_GAIN if _is_doubt(comparison) else FindingVerdict.GAIN


def _is_doubt(comparison: Comparison) -> bool:
    """Whether the loss fell reliably, but did not with each model at its own best temperature."""
    own = comparison.tempered
    return own is not None and comparison.differences["loss"].interval[1] < 0 <= own.interval[1]


def _answers_are_worse(comparison: Comparison) -> bool:
    test = comparison.mcnemar
    return test is not None and test.lost > test.gained and test.p_value <= 1 - CONFIDENCE


def _metric_that_is_worse(task: str, data: str, comparison: Comparison) -> str | None:
    """The metric that judges if its whole interval lies on the worse side and McNemar's test does not cover it."""
    metric = judging_metric(comparison.differences, data)
    if is_share_right(task) and metric == first_metric(comparison.differences):
        return None
    low, high = comparison.differences[metric].interval
    return metric if (low > 0 if metric in LOWER_IS_BETTER else high < 0) else None


def _is_rounding(before: float, change: Difference) -> bool:
    return max(map(abs, change.interval)) <= _ROUNDING * before


def _answers(task: str, data: str, comparison: Comparison, place: str) -> str:
    """Describe the changes of answers and metric."""
    sentences, test, metric = [], comparison.mcnemar, _metric_that_is_worse(task, data, comparison)
    if test is not None and task == EMBEDDING:
        sentences.append(passage("nearest", test.lost, place))
        mixed = comparison.differences.get(OLD_INDEX)
        sentences += [] if mixed is None else [passage("old_index", 100 * mixed.value)]
    elif test is not None:
        is_chance = test.p_value > 1 - CONFIDENCE
        sentences.append(passage("answers", test, place, is_chance, _answers_are_worse(comparison)))
    if metric is not None:
        interval = comparison.differences[metric].interval
        name, has_risen = in_words(metric), metric in LOWER_IS_BETTER
        sentences.append(passage("worse_metric", name, place, has_risen, interval, _CONFIDENCE))
    return " ".join(sentences)

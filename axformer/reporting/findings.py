"""What card and page say in sentences: how the model was made, whether it is better, and what the figures hold for."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from axformer.config import PassConfig
from axformer.methods.axformer.metric_limit import is_share_right
from axformer.scores.confidence import CONFIDENCE, first_metric
from axformer.wire.report import Comparison, Difference, Finding, Judgement, Report, Scores

_PLACES: dict[Literal["test", "confirming"], str] = {"test": "held-out data", "confirming": "the rows that confirmed"}
"""What did not decide, the better judge first."""
_HEADS = {Judgement.GAIN: "A gain", Judgement.NO_RELIABLE_GAIN: "No reliable gain", Judgement.LOSS: "A loss"}
_WORSE_ANSWERS = "Worse answers"
_LOWER_IS_BETTER = frozenset(("perplexity",))
"""Metrics that rise where a model becomes worse."""
_ADVICE = {
    Judgement.GAIN: "",
    Judgement.NO_RELIABLE_GAIN: "Take it for its size and speed, not for its accuracy.",
    Judgement.LOSS: "Compare before you use it.",
}
_UNCHANGED = "To remove more, take a preset without a safeguard, or trade loss for size with tolerance (docs/knobs.md)."
_ROUNDING = 1e-5
"""As a share of the loss before: by this much the same model may differ, where its parts are multiplied in another order."""
_SCORE_TEST = "tested model by model by Tango's score test, one-sided at 5%"
_INTERVAL = "by a one-sided 95% bootstrap interval, too short on few rows, so it promises nothing"
_CHOSEN = "These rows chose the model, so their figures are a little optimistic; held-out data was not given."


class Optimism(NamedTuple):
    """What rows that decide promise, and what held-out rows say."""

    passes: int
    validation: float
    """Mean change of the loss, as a share of the loss before."""
    held_out: float


OPTIMISM = Optimism(passes=26, validation=-0.059, held_out=-0.008)
"""Of the passes with the preset ``paper`` in docs/evidence.md; a test holds both together."""


def how_it_was_made(report: Report) -> str:
    """The pass, and the training after it where there was some."""
    training = "without training" if report.finetune is None else "and then trained"
    made = (
        f"This model was made from a fine-tuned transformer {training}: parts {_condition(report)} were removed "
        "(Nagarajan et al., AxFormer, 2022, Algorithm 1)."
    )
    return f"{made}{_finetuned(report)}"


def path_in_words(report: Report) -> str | None:
    """What the path is, and which model on it was kept and why; null where nothing was accepted."""
    if len(report.path) < 2:
        return None
    rows = report.data.get("confirming")
    if rows is None:
        return (
            "Each acceptance is a model, which contains all that follow, and `axformer apply --upto` writes any of them "
            "without another pass."
        )
    place = next(place for place, point in enumerate(report.path) if point.kept)
    return (
        f"{rows.rows:,} of the validation rows did not decide but confirmed. Each acceptance is a model, and "
        f"{_rule_of_choice(report)}: {place} of {len(report.path) - 1} acceptances stand. The trace holds all of them, and "
        "`axformer apply --upto` writes any. The confirming loss of the one that is kept is a little optimistic, since it was "
        "chosen by it."
    )


def _rule_of_choice(report: Report) -> str:
    points, limit = report.config.get("within_points"), limit_of(report)
    if points is not None:
        metric = first_metric(report.base.confirming or {}).replace("_", " ")
        how = _SCORE_TEST if is_share_right(report.task) else _INTERVAL
        return (
            f"the smallest before one whose {metric} there may have fallen by more than {points:g} {_unit(points)} is kept "
            f"({how})"
        )
    if limit is not None:
        return (
            f"the smallest before one whose loss there may be above {limit:g} times the untouched model's is kept (asked of "
            "each by a one-sided bound, Student's t over the rows at 5%)"
        )
    return "the model with the least loss there is kept, the smallest of equals"


def limit_of(report: Report) -> float | None:
    """How many times the untouched model's loss the result may have; null where the loss may only fall."""
    # By these two alone: reports of earlier versions have fewer knobs, or others.
    return PassConfig(loss_budget=report.config["loss_budget"], tolerance=report.config.get("tolerance")).loss_limit


def _condition(report: Report) -> str:
    """What a removal had to do."""
    budget, tolerance = report.config["loss_budget"], report.config.get("tolerance")
    loss = (
        "lowered the validation loss"
        if budget is None
        else f"kept the validation loss below {budget:g} times what it was before (a budget, which the paper does not have)"
    )
    rule = f"whose removal {loss} and helped {_majority(report)} of the validation samples"
    if tolerance is None:
        return rule
    points = report.config.get("within_points")
    metric = "" if points is None else f" and the metric within {points:g} {_unit(points)} of what it was"
    return (
        f"{rule}, and then, as long as that loss stayed below {1 + tolerance:g} times what it was before{metric}, others (a "
        "trade, which the paper does not have),"
    )


def _unit(points: float) -> str:
    return "point" if points == 1 else "points"


def _majority(report: Report) -> str:
    share: float = report.config["majority_fraction"]
    return "more than half" if share == 0.5 else f"more than {share:.0%}"


def _finetuned(report: Report) -> str:
    """What training had to do with the figures, where there was any."""
    if report.finetune is None:
        return ""
    training, after = report.finetune, report.pruned.validation["loss"]
    epochs = training.settings["epochs"]
    return (
        f" Then it was trained on {training.data.rows:,} rows ({epochs} {'epoch' if epochs == 1 else 'epochs'}): the "
        f"validation loss was {training.before.validation['loss']:.4f} before and is {after:.4f} now."
    )


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
        sentence="No held-out data was given: the validation figures below were also what decided, so they are optimistic.",
        advice=(
            f"Over {OPTIMISM.passes} passes with the preset paper the loss changed by {OPTIMISM.validation:+.1%} on the rows "
            f"that decided and by {OPTIMISM.held_out:+.1%} on held-out ones (docs/evidence.md): measure the model on data that "
            "the pass has not seen."
        ),
        answers="",
    )


def _measured(
    task: str, data: Literal["test", "confirming"], place: str, before: float, after: float, comparison: Comparison
) -> Finding:
    change = comparison.differences["loss"]
    verdict = judged(task, before, comparison)
    head = _WORSE_ANSWERS if verdict is Judgement.LOSS and change.interval[0] <= 0 else _HEADS[verdict]
    advice = _UNCHANGED if _is_rounding(before, change) else _ADVICE[verdict]
    if data == "confirming":
        advice = f"{advice} {_CHOSEN}".strip()
    return Finding(
        data=data,
        verdict=verdict,
        sentence=f"{head}: on {place} {_change_of_loss(before, after, change)}.",
        advice=advice,
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


def _change_of_loss(before: float, after: float, change: Difference) -> str:
    if _is_rounding(before, change):
        return f"the loss is what it was, {before:.4f}"
    moved = "fell from {:.4f} to {:.4f}" if after < before else "did not fall: it was {:.4f} and is {:.4f}"
    low, high = change.interval
    between = f"with {CONFIDENCE:.0%} confidence the change is between {low:+.4f} and {high:+.4f}"
    unsure = ", which these samples cannot tell from none" if low <= 0 <= high else ""
    return f"the loss {moved.format(before, after)}; {between}{unsure}"


def _answers(task: str, comparison: Comparison, place: str) -> str:
    """What answers and metric say beside the loss."""
    return " ".join(told for told in (_changed(comparison, place), _worse_metric(task, comparison, place)) if told)


def _changed(comparison: Comparison, place: str) -> str:
    """The verdict of McNemar's test in words."""
    test = comparison.mcnemar
    if test is None:
        return ""
    if test.gained + test.lost == 0:
        return f"No answer on {place} changed between right and wrong."
    changed = f"Of the answers on {place} {test.gained} became right and {test.lost} became wrong"
    p_value = f"p = {test.p_value:.2g} in McNemar's exact test"
    if test.p_value > 1 - CONFIDENCE:
        return f"{changed}: no more than chance explains ({p_value})."
    return f"{changed}: the model is {'worse' if _answers_are_worse(comparison) else 'better'} by more than chance ({p_value})."


def _worse_metric(task: str, comparison: Comparison, place: str) -> str:
    metric = _metric_that_is_worse(task, comparison)
    if metric is None:
        return ""
    moved, (low, high) = "rose" if metric in _LOWER_IS_BETTER else "fell", comparison.differences[metric].interval
    return (
        f"The {metric.replace('_', ' ')} on {place} {moved} by more than chance: with {CONFIDENCE:.0%} confidence the change "
        f"is between {low:+.4f} and {high:+.4f}."
    )


def limits(report: Report) -> list[str]:
    """What the figures hold for, and what not."""
    machine = report.environment
    sets = "validation and held-out data" if report.data["test"] is not None else "validation data"
    precision = (
        f"Both models were measured in {report.dtype}, the number format of the checkpoint and of the result; the pass decided "
        "in another one, so the losses of its trials differ a little."
    )
    return [
        *([] if report.dtype == "float32" else [precision]),
        f"Speed, load and memory were measured once, on {machine['device']} ({machine['cores']} cores, threads of "
        f"PyTorch: {machine['threads']}, {machine['platform']}). Another machine gives other figures, perhaps another order; "
        "axformer bench measures there.",
        f"Loss and metrics are those of the {sets} named above. What the removed parts did for inputs unlike these was not "
        "looked at: measure on your own before you rely on it.",
        "The validation data decided what went, so its figures flatter the result; intervals do not say by how much.",
    ]

"""What card and page say in sentences: how the model was made, whether it is better, and what the figures hold for."""

from dataclasses import dataclass

from axformer.reporting.confidence import CONFIDENCE
from axformer.reporting.report import Comparison, Report


@dataclass(frozen=True)
class Finding:
    """Whether the finished model is better, as far as the data can tell."""

    sentence: str
    is_good: bool
    advice: str
    """What goes on after the sentence; may be empty."""
    answers: str
    """How many answers changed between right and wrong; empty where a task knows no such thing."""


def how_it_was_made(report: Report) -> str:
    """The pass, and the training after it where there was some."""
    training = "without training" if report.finetune is None else "and then trained"
    made = (
        f"This model was made from a fine-tuned transformer {training}: parts whose removal {_condition(report)} and helped "
        f"{_majority(report)} of the validation samples were removed (Nagarajan et al., AxFormer, 2022, Algorithm 1)."
    )
    return f"{made}{_finetuned(report)}"


def choice_of(report: Report) -> str | None:
    """Which model on the path was kept and why; null where nothing but the pass itself chose."""
    rows = report.data.get("confirming")
    if rows is None:
        return None
    budget = report.config["loss_budget"]
    rule = (
        "the model with the least loss there is kept, the smallest of equals"
        if budget is None
        else f"the smallest whose loss there is at most {budget:g} times the untouched model's is kept"
    )
    place = next(place for place, point in enumerate(report.path) if point.kept)
    return (
        f"{rows.rows:,} of the validation rows did not decide but confirmed. Each acceptance is a model, and {rule}: "
        f"{place} of {len(report.path) - 1} acceptances stand. The trace holds all of them, and `axformer apply --upto` writes "
        "any. The confirming loss of the one that is kept is a little optimistic, since it was chosen by it."
    )


def _condition(report: Report) -> str:
    """What a removal had to do with the loss."""
    budget = report.config["loss_budget"]
    if budget is None:
        return "lowered the validation loss"
    return (
        f"kept the validation loss below {budget:g} times what it was before (a budget, which the paper does not have)"
    )


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


def finding_of(report: Report) -> Finding:
    """The verdict over the finished model on data that the pass has not seen, where some was given."""
    if report.pruned.test is None or report.base.test is None:
        return Finding(
            "No held-out data was given: the validation figures below were also what decided, so they are optimistic. "
            "Measure the model on data that the pass has not seen.",
            is_good=True,
            advice="",
            answers="",
        )
    before, after = report.base.test["loss"], report.pruned.test["loss"]
    comparison = report.comparison["test"]
    assert comparison is not None, "both models were measured on held-out data"
    fell = after < before
    change = (
        f"On held-out data the loss fell from {before:.4f} to {after:.4f}"
        if fell
        else f"On held-out data the loss did not fall: it was {before:.4f} and is {after:.4f}"
    )
    advice = "" if fell else "Compare before you use it."
    return Finding(f"{change}{_certainty(comparison)}.", fell, advice, _answers(comparison))


def _certainty(comparison: Comparison) -> str:
    low, high = comparison.differences["loss"].interval
    if low <= 0 <= high:
        return ", a difference that these samples cannot tell from none"
    return f", and with {CONFIDENCE:.0%} confidence the change is between {low:+.4f} and {high:+.4f}"


def _answers(comparison: Comparison) -> str:
    """The verdict of McNemar's test in words."""
    test = comparison.mcnemar
    if test is None:
        return ""
    if test.gained + test.lost == 0:
        return "No held-out answer changed between right and wrong."
    changed = f"Of the held-out answers {test.gained} became right and {test.lost} became wrong"
    p_value = f"p = {test.p_value:.2g} in McNemar's exact test"
    if test.p_value > 1 - CONFIDENCE:
        return f"{changed}: no more than chance explains ({p_value})."
    return (
        f"{changed}: the model is {'better' if test.gained > test.lost else 'worse'} by more than chance ({p_value})."
    )


def limits(report: Report) -> list[str]:
    """What the figures hold for, and what not."""
    machine = report.environment
    sets = "validation and held-out data" if report.data["test"] is not None else "validation data"
    return [
        f"Speed, load and memory were measured once, on {machine['device']} ({machine['cores']} cores, threads of "
        f"PyTorch: {machine['threads']}, {machine['platform']}). Another machine gives other figures, perhaps another order; "
        "axformer bench measures there.",
        f"Loss and metrics are those of the {sets} named above. What the removed parts did for inputs unlike these was not "
        "looked at: measure on your own before you rely on it.",
        "The validation data decided what went, so its figures flatter the result; intervals do not say by how much.",
    ]

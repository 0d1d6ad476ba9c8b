"""The model card: ``README.md`` beside a finished model, written for whoever finds the directory."""

from axformer.config import PassConfig
from axformer.elements import Dimensions, parse
from axformer.plan import Plan
from axformer.reporting.card_forms import Loading, forms_section, loading_section
from axformer.reporting.card_tables import before_and_after, in_int8, orders_table
from axformer.reporting.confidence import CONFIDENCE
from axformer.reporting.picture import describe_plan
from axformer.reporting.report import Comparison, DataSummary, Report

PICTURE = "plan.svg"
"""The file of the plan's picture, beside the card."""


def write_card(report: Report, plan: Plan, dimensions: Dimensions, loading: Loading) -> str:
    """The model card as Markdown."""
    return f"""---
library_name: axformer
pipeline_tag: {loading.tag}
---
# A transformer after an AxFormer pass

This model was made from a fine-tuned transformer {_training(report)}: parts whose removal {_condition(report)} and
helped more than half of the validation samples were removed (Nagarajan et al., AxFormer, 2022, Algorithm 1).
{_finetuned(report)}{_verdict(report)}

## Before and after

{before_and_after(report)}

In brackets are {CONFIDENCE:.0%} bootstrap intervals over the samples, for the change those of the paired bootstrap.
Latency is the median of {report.latency["repeats"]} forward passes, both models taking turns
(batch {report.latency["batch"]}, {report.latency["tokens"]} tokens). The pass took {report.seconds:.1f} s for {report.trials} \
trials.

{_int8(report)}{_orders(report)}## What was removed

{_removed(report)}

![{describe_plan(plan, dimensions)}]({PICTURE})

## Forms

{forms_section(report)}

## Loading

{loading_section(report, loading)}

## Made with

{_made_with(report)}

## What the figures hold for

{_limits(report)}

`plan.json` says what was removed, `trace.jsonl` why: one trial a line. `report.json` holds these figures.
"""


def _training(report: Report) -> str:
    return "without training" if report.finetune is None else "and then trained"


def _finetuned(report: Report) -> str:
    """What training had to do with the figures, where there was any."""
    if report.finetune is None:
        return ""
    training, after = report.finetune, report.pruned.validation["loss"]
    epochs = training.settings["epochs"]
    return (
        f"Then it was trained on {training.data.rows:,} rows ({epochs} {'epoch' if epochs == 1 else 'epochs'}): the "
        f"validation loss was {training.before.validation['loss']:.4f} before and is {after:.4f} now.\n"
    )


def _condition(report: Report) -> str:
    """What a removal had to do with the loss."""
    budget = report.config["loss_budget"]
    if budget is None:
        return "lowered the validation loss"
    return (
        f"kept the validation loss below {budget:g} times what it was before (a budget, which the paper does not have)"
    )


def _verdict(report: Report) -> str:
    if report.pruned.test is None or report.base.test is None:
        return (
            "No held-out data was given: the validation figures below were also what decided, so they are optimistic. "
            "Measure the model on data that the pass has not seen."
        )
    before, after = report.base.test["loss"], report.pruned.test["loss"]
    comparison = report.comparison["test"]
    assert comparison is not None, "both models were measured on held-out data"
    if after < before:
        change = f"On held-out data the loss fell from {before:.4f} to {after:.4f}{_certainty(comparison)}."
    else:
        change = (
            f"**On held-out data the loss did not fall: it was {before:.4f} and is {after:.4f}**{_certainty(comparison)}. "
            "Compare before you use it."
        )
    return f"{change}{_answers(comparison)}"


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
    changed = f"\nOf the held-out answers {test.gained} became right and {test.lost} became wrong"
    if test.gained + test.lost == 0:
        return "\nNo held-out answer changed between right and wrong."
    p_value = f"p = {test.p_value:.2g} in McNemar's exact test"
    if test.p_value > 1 - CONFIDENCE:
        return f"{changed}: no more than chance explains ({p_value})."
    return (
        f"{changed}: the model is {'better' if test.gained > test.lost else 'worse'} by more than chance ({p_value})."
    )


def _int8(report: Report) -> str:
    """What the pass decided by, where that was not float32."""
    if report.int8 is None:
        return ""
    return f"""## In int8

The pass decided in int8: every trial computed the layers with weights and activations of 8 bits, so what was removed is right
for the quantized model. Both models in that arithmetic:

{in_int8(report.int8)}

"""


def _orders(report: Report) -> str:
    """What the other orders would have led to, where they were tried."""
    if report.orders is None:
        return ""
    return f"""## Orders

{len(report.orders)} passes inspected the blocks in different orders; {_preference(report)} was kept.

{orders_table(report)}

"""


def _preference(report: Report) -> str:
    """Which of several passes is kept."""
    best = "the one with the least validation loss"
    if report.config["loss_budget"] is not None:
        best = "the one that leaves the fewest parameters"
    targets = (report.config["target_size"], report.config["target_speedup"])
    return best if targets == (None, None) else f"{best}, first among those that reached the target,"


def _removed(report: Report) -> str:
    if not report.removed and not report.hard_attention:
        condition = (
            "lowered the loss" if report.config["loss_budget"] is None else "stayed within the budget for the loss"
        )
        return (
            f"Nothing: no removal {condition} and helped a majority of the samples. The model is the one that came in."
        )
    ids = sorted(report.removed, key=lambda id: parse(id).layer)
    parts = [", ".join(f"`{id}`" for id in ids) + "." if ids else "No element."]
    if report.hard_attention:
        layers = ", ".join(str(layer) for layer in report.hard_attention)
        parts.append(
            f"Hard attention in layers {layers}: each query keeps its {report.config['attention_top_k']} largest."
        )
    return " ".join(parts)


def _made_with(report: Report) -> str:
    machine = report.environment
    commit = "" if machine["commit"] is None else f" (commit {machine['commit']})"
    sets = (("validation", "validation, which decided"), ("test", "held-out, which did not"))
    data = [_data(name, report.data[key]) for key, name in sets]
    return "\n".join(
        [
            f"- axformer {machine['axformer']}{commit}, torch {machine['torch']}, transformers {machine['transformers']}, "
            f"Python {machine['python']}",
            *(f"- Data, {line}" for line in data if line),
            f"- Knobs: {_knobs(report)}",
        ]
    )


def _data(name: str, summary: DataSummary | None) -> str:
    if summary is None:
        return ""
    cut = f", {summary.cut:,} of them cut" if summary.cut else ""
    return f"{name}: {summary.rows:,} rows{cut}, SHA-256 `{summary.sha256}`"


def _knobs(report: Report) -> str:
    """Those that are not as by default."""
    default = PassConfig().model_dump(mode="json")
    changed = [f"`{name}={value}`" for name, value in report.config.items() if value != default[name]]
    rest = "the others are" if changed else "all are"
    return f"{', '.join([*changed, ''])}{rest} as by default; `plan.json` lists them"


def _limits(report: Report) -> str:
    machine = report.environment
    sets = "validation and held-out data" if report.data["test"] is not None else "validation data"
    lines = [
        f"- Speed, load and memory were measured once, on {machine['device']} ({machine['cores']} cores, threads of "
        f"PyTorch: {machine['threads']}, {machine['platform']}). Another machine gives other figures, perhaps another order; "
        "`axformer bench` measures there.",
        f"- Loss and metrics are those of the {sets} named above. What the removed parts did for inputs unlike these was not "
        "looked at: measure on your own before you rely on it.",
        "- The validation data decided what went, so its figures flatter the result; intervals do not say by how much.",
    ]
    return "\n".join(lines)

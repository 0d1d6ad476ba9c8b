"""The model card: ``README.md`` beside a finished model, written for whoever finds the directory."""

from dataclasses import dataclass

from axformer.elements import Dimensions, parse
from axformer.heads import Head
from axformer.plan import LayerPlan, Plan
from axformer.reporting.confidence import CONFIDENCE
from axformer.reporting.report import Comparison, InInt8, Interval, Measures, Report, Scores
from axformer.tasks.base import Task

_FULL, _PART, _GONE = "█", "▒", "·"


@dataclass(frozen=True)
class Loading:
    """How a model is loaded with transformers' own classes."""

    tag: str
    """The task as model hubs call it."""
    code: str


def loading_of(task: Task, head: Head) -> Loading:
    """By the pipeline of its task where transformers has one, else by the Auto class of its head."""
    if task.pipeline is not None:
        code = f'from transformers import pipeline\npredict = pipeline("{task.pipeline}", model="model")'
        return Loading(task.pipeline, code)
    name = head.auto_class.__name__
    code = f'from transformers import {name}\nmodel = {name}.from_pretrained("model")'
    return Loading(task.name.replace("_", "-"), code)


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

{_table(report)}

In brackets are {CONFIDENCE:.0%} bootstrap intervals over the samples, for the change those of the paired bootstrap.
Latency is the median of {report.latency["repeats"]} forward passes, both models taking turns
(batch {report.latency["batch"]}, {report.latency["tokens"]} tokens, {report.environment["device"]}, threads: \
{report.environment["threads"]}). The pass took {report.seconds:.1f} s for {report.trials} trials.

{_int8(report)}{_orders(report)}## What was removed

{_removed(report)}

```
{_map(plan, dimensions)}
```

{_FULL} kept · {_PART} kept in part · {_GONE} removed. Attention and FFN as whole blocks, then heads one by one, then the share
of neurons kept; K marks hard attention.

## Loading

```python
import axformer
model = axformer.load("model")
```

or, where transformers' own classes are used:

```python
import axformer.auto
{loading.code}
```

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

{_lines(_scores(report.int8))}

"""


def _orders(report: Report) -> str:
    """What the other orders would have led to, where they were tried."""
    if report.orders is None:
        return ""
    rows = [
        f"| {one.order}{' (this model)' if one.kept else ''} | {one.loss:.4f} | {one.parameters:,} | {one.trials} "
        f"| {one.seconds:.1f} |"
        for one in report.orders
    ]
    return "\n".join(
        [
            "## Orders",
            "",
            f"{len(rows)} passes inspected the blocks in different orders; {_preference(report)} was kept.",
            "",
            "| order | validation loss | parameters | trials | seconds |",
            "|---|---|---|---|---|",
            *rows,
            "\n",
        ]
    )


def _preference(report: Report) -> str:
    """Which of several passes is kept."""
    best = "the one with the least validation loss"
    if report.config["loss_budget"] is not None:
        best = "the one that leaves the fewest parameters"
    targets = (report.config["target_size"], report.config["target_speedup"])
    return best if targets == (None, None) else f"{best}, first among those that reached the target,"


def _table(report: Report) -> str:
    return _lines(_scores(report) + _sizes(report.base, report.pruned))


def _lines(rows: list[str]) -> str:
    return "\n".join(["| measure | before | after | change |", "|---|---|---|---|", *rows])


def _scores(both: Report | InInt8) -> list[str]:
    sets = ("validation",) if both.base.test is None else ("validation", "test")
    return [row for data in sets for row in _rows(data, _figures(both.base, data), _figures(both.pruned, data), both)]


def _figures(measures: Scores, data: str) -> dict[str, str]:
    values: dict[str, float] = getattr(measures, data)
    intervals: dict[str, Interval] = getattr(measures, f"{data}_intervals")
    return {key: f"{value:.4f} {_bracketed(intervals[key])}" for key, value in values.items()}


def _bracketed(interval: Interval, form: str = ".4f") -> str:
    return f"[{interval[0]:{form}}, {interval[1]:{form}}]"


def _rows(data: str, before: dict[str, str], after: dict[str, str], both: Report | InInt8) -> list[str]:
    comparison = both.comparison[data]
    assert comparison is not None, "both models were measured on this data"
    name = "held-out" if data == "test" else data
    return [
        f"| {name} {key.replace('_', ' ')} | {before[key]} | {after[key]} "
        f"| {change.value:+.4f} {_bracketed(change.interval, '+.4f')} |"
        for key, change in comparison.differences.items()
    ]


def _sizes(base: Measures, pruned: Measures) -> list[str]:
    return [
        f"| parameters | {base.parameters:,} | {pruned.parameters:,} | {_share(base.parameters, pruned.parameters)} |",
        f"| weight files, MB | {base.bytes / 1e6:.1f} | {pruned.bytes / 1e6:.1f} | {_share(base.bytes, pruned.bytes)} |",
        f"| latency, ms | {base.latency_ms:.2f} | {pruned.latency_ms:.2f} | {_share(base.latency_ms, pruned.latency_ms)} |",
    ]


def _share(before: float, after: float) -> str:
    return f"{after / before - 1:+.1%}"


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


def _map(plan: Plan, dimensions: Dimensions) -> str:
    width = len(str(dimensions.layers - 1))
    rows = [_map_row(index, layer, dimensions, width) for index, layer in enumerate(plan.layers)]
    return "\n".join(reversed(rows))


def _map_row(index: int, layer: LayerPlan, dimensions: Dimensions, width: int) -> str:
    heads = "".join(_FULL if head in layer.heads else _GONE for head in range(dimensions.heads))
    share = layer.neuron_count / dimensions.intermediate_size
    attention = _mark(layer.attention, len(layer.heads), dimensions.heads)
    ffn = _mark(layer.ffn, layer.neuron_count, dimensions.intermediate_size)
    hard = "K" if layer.hard_attention is not None else " "
    return f"layer {index:{width}}  attention {attention}{hard}  heads {heads}  ffn {ffn}  neurons {share:4.0%}"


def _mark(kept: bool, parts: int, whole: int) -> str:
    if not kept:
        return _GONE
    return _FULL if parts == whole else _PART

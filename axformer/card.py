"""The model card: ``README.md`` beside a finished model, written for whoever finds the directory."""

from axformer.elements import Dimensions, parse
from axformer.plan import LayerPlan, Plan
from axformer.report import Measures, Report

_FULL, _PART, _GONE = "█", "▒", "·"


def write_card(report: Report, plan: Plan, dimensions: Dimensions) -> str:
    """The model card as Markdown."""
    return f"""---
library_name: axformer
pipeline_tag: text-classification
---
# A transformer after an AxFormer pass

This model was made from a fine-tuned transformer without training: parts whose removal lowered the validation loss and
helped more than half of the validation samples were removed (Nagarajan et al., AxFormer, 2022, Algorithm 1).
{_verdict(report)}

## Before and after

{_table(report)}

Latency is the median of {report.latency["repeats"]} forward passes, both models taking turns
(batch {report.latency["batch"]}, {report.latency["tokens"]} tokens, {report.environment["device"]}, threads: \
{report.environment["threads"]}). The pass took {report.seconds:.1f} s for {report.trials} trials.

## What was removed

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
from transformers import pipeline
classify = pipeline("text-classification", model="model")
```

`plan.json` says what was removed, `trace.jsonl` why: one trial a line. `report.json` holds these figures.
"""


def _verdict(report: Report) -> str:
    if report.pruned.test is None or report.base.test is None:
        return (
            "No held-out data was given: the validation figures below were also what decided, so they are optimistic. "
            "Measure the model on data that the pass has not seen."
        )
    before, after = report.base.test["loss"], report.pruned.test["loss"]
    if after < before:
        return f"On held-out data the loss fell from {before:.4f} to {after:.4f}."
    return f"**On held-out data the loss did not fall: it was {before:.4f} and is {after:.4f}.** Compare before you use it."


def _table(report: Report) -> str:
    lines = ["| measure | before | after |", "|---|---|---|"]
    lines += _rows("validation", report.base.validation, report.pruned.validation)
    if report.base.test is not None and report.pruned.test is not None:
        lines += _rows("held-out", report.base.test, report.pruned.test)
    lines += _sizes(report.base, report.pruned)
    return "\n".join(lines)


def _rows(name: str, before: dict[str, float], after: dict[str, float]) -> list[str]:
    return [f"| {name} {key.replace('_', ' ')} | {before[key]:.4f} | {after[key]:.4f} |" for key in before]


def _sizes(base: Measures, pruned: Measures) -> list[str]:
    return [
        f"| parameters | {base.parameters:,} | {pruned.parameters:,} |",
        f"| weight files, MB | {base.bytes / 1e6:.1f} | {pruned.bytes / 1e6:.1f} |",
        f"| latency, ms | {base.latency_ms:.2f} | {pruned.latency_ms:.2f} |",
    ]


def _removed(report: Report) -> str:
    if not report.removed and not report.hard_attention:
        return "Nothing: no removal lowered the loss and helped a majority of the samples. The model is the one that came in."
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

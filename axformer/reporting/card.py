"""The model card: ``README.md`` beside a finished model, written for whoever finds the directory."""

from axformer.config import PassConfig
from axformer.drawing.curve import CURVE, describe_path
from axformer.drawing.picture import describe_plan
from axformer.plan.elements import Dimensions, parse
from axformer.plan.plan import Plan
from axformer.reporting.card_forms import Loading, forms_section, loading_section
from axformer.reporting.card_tables import (
    ENCODER,
    LATENCY_OF_A_POINT,
    before_and_after,
    in_int8,
    latency_in_words,
    orders_table,
    path_table,
)
from axformer.reporting.findings import how_it_was_made, limit_of, limits, path_in_words
from axformer.reporting.first_look import first_look_of
from axformer.scores.confidence import CONFIDENCE
from axformer.wire.report import DataSummary, Judgement, Report

PICTURE = "plan.svg"
"""The file of the plan's picture, beside the card."""


def write_card(report: Report, plan: Plan, dimensions: Dimensions, loading: Loading) -> str:
    """The model card as Markdown."""
    return f"""---
library_name: axformer
pipeline_tag: {loading.tag}
---
# A transformer after an AxFormer pass

{how_it_was_made(report)}
{_verdict(report)}

{_first_look(report)}

## Before and after

{before_and_after(report).markdown()}

In brackets are {CONFIDENCE:.0%} bootstrap intervals over the samples, for the change those of the paired bootstrap.
Latency is the median of {report.latency["repeats"]} forward passes, both models taking turns
(batch {report.latency["batch"]}, {report.latency["tokens"]} tokens).{latency_in_words(report)}
{ENCODER} The pass took {report.seconds:.1f} s for {report.trials} trials.{_refused(report)}

{_int8(report)}{_orders(report)}{_path(report)}## What was removed

{_removed(report)}

![{describe_plan(plan, dimensions)}]({PICTURE})

## Forms

{forms_section(report)}

## Loading

{loading_section(report, loading)}

## Made with

{_made_with(report)}

## What the figures hold for

{chr(10).join(f"- {line}" for line in limits(report))}

`report.html` shows all of this on one page, with every trial. `plan.json` says what was removed, `trace.jsonl` why: one trial a
line. `report.json` holds these figures.
"""


def _verdict(report: Report) -> str:
    finding = report.finding
    assert finding is not None, "reports that are made now have one"
    is_bad = finding.verdict in (Judgement.NO_RELIABLE_GAIN, Judgement.LOSS)
    sentence = f"**{finding.sentence}**" if is_bad else finding.sentence
    return " ".join(part for part in (sentence, finding.advice, finding.answers) if part)


def _first_look(report: Report) -> str:
    seen = first_look_of(report)
    assert seen is not None, "reports that are made now have it"
    return f"Validation data: {seen}."


def _refused(report: Report) -> str:
    """What the safeguard kept the pass from."""
    refused = report.work.refused_by_safeguard
    if refused is None:
        return ""
    safeguard = report.config["safeguard"]
    return f" Of these its safeguard, `{safeguard}`, refused {refused} that the paper's rule would have accepted."


def _int8(report: Report) -> str:
    """What the pass decided by, where that was not float32."""
    if report.int8 is None:
        return ""
    return f"""## In int8

The pass decided in int8: every trial computed the layers with weights and activations of 8 bits, so what was removed is right
for the quantized model. Both models in that arithmetic:

{in_int8(report.int8).markdown()}

"""


def _orders(report: Report) -> str:
    """What the other orders would have led to, where they were tried."""
    if report.orders is None:
        return ""
    return f"""## Orders

{len(report.orders)} passes inspected the blocks in different orders; {_preference(report)} was kept.

{orders_table(report).markdown()}

"""


def _path(report: Report) -> str:
    """What each acceptance led to, where there was one."""
    told = path_in_words(report)
    if told is None:
        return ""
    return f"""## The path

{told} {LATENCY_OF_A_POINT}

![{describe_path(report.path)}]({CURVE})

{path_table(report).markdown()}

"""


def _preference(report: Report) -> str:
    """Which of several passes is kept."""
    best = f"the one with the least {'confirming' if report.config['confirm'] else 'validation'} loss"
    if limit_of(report) is not None:
        best = "the one that leaves the fewest parameters"
    targets = (report.config["target_size"], report.config["target_speedup"])
    return best if targets == (None, None) else f"{best}, first among those that reached the target,"


def _removed(report: Report) -> str:
    if len(report.path) > 1 and report.path[0].kept:
        return "Nothing: the rows that confirm bore out none of what was accepted. The model is the one that came in."
    if not report.removed and not report.hard_attention:
        condition = "lowered the loss" if limit_of(report) is None else "kept the loss within what was allowed"
        majority = "" if report.config.get("tolerance") is not None else " and helped a majority of the samples"
        return f"Nothing: no removal {condition}{majority}. The model is the one that came in."
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
    sets = (
        ("validation", "validation, which decided"),
        ("confirming", "a part of it, which did not decide and confirmed"),
        ("test", "held-out, which did not"),
    )
    data = [_data(name, report.data.get(key)) for key, name in sets]
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

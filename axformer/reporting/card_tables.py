"""Tables of the card and the page: figures before and after, and the path."""

from collections.abc import Mapping
from typing import Any

from axformer.data.columns import OWN_ANSWERS
from axformer.plan.elements import Dimensions, label_of
from axformer.plan.plan import LayerPlan, Plan
from axformer.reporting.rendering import UNKNOWN, Table, number
from axformer.wire.metrics import in_words
from axformer.wire.report import Interval, Report, Scores

MOST_NAMED = 60
"""Most removed elements that a card lists; beyond that it shows what is left of each layer."""
SETS = {"validation": "validation", "confirming": "confirming", "unlabelled": "answers as before,", "test": "held-out"}
"""The data sets of a report and the names that tables use for them."""
BEFORE_TRAINING = "cut alone"
"""The column of the smaller model before it was trained."""
SIZES = (
    ("parameters", "parameters", 1, ",.0f"),
    ("parameters of the encoder", "encoder_parameters", 1, ",.0f"),
    ("weight files, MB", "bytes", 1e6, ",.1f"),
    ("operations, millions", "operations", 1e6, ",.1f"),
    ("operations of the encoder, millions", "encoder_operations", 1e6, ",.1f"),
    ("latency, ms", "latency_ms", 1, ".2f"),
)
"""Figures of a model beside those of its data: how tables and the report call them, what one is worth, and its form."""


def before_and_after(report: Report) -> Table:
    """Scores and sizes of both models, and scores of the smaller one before it was trained."""
    rows, cut = _scores(report) + sizes_of(dict(report)), before_training(report.model_dump(include={"finetune"}))
    if not cut:
        return Table(["measure", "before", "after", "change"], rows)
    between = [[what, before, cut.get(what, ""), *rest] for what, before, *rest in rows]
    return Table(["measure", "before", BEFORE_TRAINING, "after", "change"], between)


def before_training(report: Mapping[str, Any]) -> dict[str, str]:
    """The scores of the smaller model before it was trained, by what they measure; empty if it was not.

    Args:
        report: the fields of a report.
    """
    before: Mapping[str, Any] = (report.get("finetune") or {}).get("before") or {}
    return {
        f"{name} {in_words(key)}": f"{value:.4f}"
        for data, name in SETS.items()
        for key, value in (before.get(data) or {}).items()
    }


def by_layer(plan: Plan, dimensions: Dimensions) -> Table:
    """What is left of every layer."""
    rows = [
        [
            f"{index}",
            f"{len(layer.heads)} of {dimensions.heads}" if layer.attention else _gone(layer),
            f"{layer.neuron_count:,} of {dimensions.intermediate_size:,}" if layer.ffn else _gone(layer),
        ]
        for index, layer in enumerate(plan.layers)
    ]
    return Table(["layer", "heads", "neurons"], rows)


def _gone(layer: LayerPlan) -> str:
    return "dropped" if layer.dropped else "gone"


def path_table(report: Report) -> Table:
    """Every model on the path of the pass."""
    untouched = report.path[0]
    measured = [
        name
        for name, figures in (("confirming", untouched.confirming), ("held-out", untouched.test))
        if figures is not None
    ]
    head = ["after trial", "accepted", "deciding loss", *(f"{name} loss" for name in measured)]
    rows = [
        [
            f"{point.seq}{' (this model)' if point.kept else ''}",
            label_of(point.element, "untouched"),
            f"{point.loss:.4f}",
            *(f"{figures['loss']:.4f}" for figures in (point.confirming, point.test) if figures is not None),
            f"{point.parameters:,}",
            number(point.encoder_parameters, ","),
            f"{point.estimated_speedup:.2f} times fewer",
            _fewer(untouched.encoder_operations, point.encoder_operations),
            f"{point.estimated_latency_ms:.2f}",
        ]
        for point in report.path
    ]
    return Table([*head, "parameters", "encoder parameters", "operations", "encoder operations", "latency, ms"], rows)


def _fewer(before: int | None, after: int | None) -> str:
    """The factor by which operations shrank; "none" if none are left."""
    if before is None or after is None:
        return UNKNOWN
    return f"{before / after:.2f} times fewer" if after else "none"


def _scores(report: Report) -> list[list[str]]:
    base, pruned = report.base, report.pruned
    validation = report.data["validation"]
    is_own = (
        validation is not None and validation.labels_as == OWN_ANSWERS
    )  # the unlabelled rows say the same, and better
    sets = [data for data in SETS if getattr(base, data) is not None and not (is_own and data == "validation")]
    return [row for data in sets for row in _rows(data, _figures(base, data), _figures(pruned, data), report)]


def _figures(measures: Scores, data: str) -> dict[str, str]:
    values: dict[str, float] = getattr(measures, data)
    intervals: dict[str, Interval] = getattr(measures, f"{data}_intervals")
    return {key: f"{value:.4f} {_bracketed(intervals[key])}" for key, value in values.items()}


def _bracketed(interval: Interval, form: str = ".4f") -> str:
    return f"[{interval[0]:{form}}, {interval[1]:{form}}]"


def _rows(data: str, before: dict[str, str], after: dict[str, str], report: Report) -> list[list[str]]:
    comparison = report.comparison[data]
    assert comparison is not None, "both models were measured on this data"
    figures = [
        [
            f"{SETS[data]} {in_words(key)}",
            before[key],
            after[key],
            f"{change.value:+.4f} {_bracketed(change.interval, '+.4f')}",
        ]
        for key, change in comparison.differences.items()
    ]
    if comparison.calibration is None:
        return figures
    what, (first, second) = f"{SETS[data]} calibration error", comparison.calibration
    figures.append([what, f"{first:.4f}", f"{second:.4f}", f"{second - first:+.4f}"])
    if comparison.calibrated is not None and comparison.temperature is not None:
        change = f"{comparison.calibrated - first:+.4f}"
        figures.append([f"{what}, logits / {comparison.temperature:.3g}", "", f"{comparison.calibrated:.4f}", change])
    return figures


def sizes_of(report: Mapping[str, Any]) -> list[list[str]]:
    """One row per figure that both models have: name, before, after, and the change in per cent.

    Args:
        report: the fields of a report; those of earlier versions lack some figures.
    """
    base, pruned = dict(report["base"]), dict(report["pruned"])
    both = [(name, base.get(key), pruned.get(key), scale, form) for name, key, scale, form in SIZES]
    both.append(("latency by pruning alone, ms", report.get("one_position_ms"), pruned.get("latency_ms"), 1, ".2f"))
    return [
        [name, format(before / scale, form), format(after / scale, form), share(before, after)]
        for name, before, after, scale, form in both
        if before is not None and after is not None
    ]


def without_removal(before: float, one_position: float, after: float) -> str:
    """Describe the change in latency, and the part of it that needs no removal.

    Args:
        before: latency of the untouched model, in any unit.
        one_position: its latency in the compact model's class, which computes the last layer at one position.
        after: latency of the compact model.
    """
    return (
        f"Latency {share(before, after)}, of which {share(before, one_position)} by computing the last layer at one position, "
        "which removes nothing"
    )


def share(before: float, after: float) -> str:
    """The relative change in per cent."""
    return f"{after / before - 1:+.1%}"

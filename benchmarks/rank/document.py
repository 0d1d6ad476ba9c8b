"""Writes ``docs/rank-results.md`` from the files of the cells alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.compress.tables import NONE, spread, table
from benchmarks.rank.grid import CURVE_SETS, CURVES, ORDERS, SETS, WAYS, cells

RESULTS = Path("benchmarks/results/rank")
DOCUMENT = Path("docs/rank-results.md")
Content = Mapping[str, Any]
_POINT = 100.0
_SHARES = tuple(tenths / 10 for tenths in range(1, 10))
"""Shares of the heads that a curve has points at."""

_WAYS_TOLD = """The counterpart of Table IV of the AxFormer paper. **Best on the path** is what the paper reports: of
all models that a way made, that which does best *on the held-out rows themselves*. It is **optimistic**, since those
rows chose it, the more so the more models there are. **Chosen** is what the way hands out, and the held-out rows had
no say in it: the cheapest model that is [certified](certificate.md) to have lost less than one point, else the
untouched one; of the pass the model with the lowest loss on the confirming rows. *Fewer operations* are those of the
whole model, at the lengths of the data."""
_CURVES_TOLD = """Heads leave by first-order Taylor, a tenth of them in every step, ranked once on the untouched model
(Chiang and others, 2020, Figure 1). Figures are the metric as a share of the untouched model's, by the share of the
heads that have left; the paper finds `l1` best."""

_ORDERS_TOLD = """The pass with the preset `robust`, and all that it accepted. Importance takes one backward pass and no
name of a task. Changes are on held-out rows, against the untouched model."""


def read_cells(results: Path) -> list[Content]:
    """All existing cells, in the order of their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]


def document_of(found: Sequence[Content]) -> str:
    """Write the document.

    Args:
        found: the cells, at least one.
    """
    partial = " **The others are not measured yet.**" if len(found) < len(cells()) else ""
    sections = [
        f"""# Ranked pruning beside the pass and compression

Made by `python -m benchmarks.rank`: {len(found)} of {len(cells())} cells.{partial} Each is a checkpoint that was fine-tuned
with one seed, and one way to smaller models of it. 40 % of the validation rows are set apart to choose, the same for all ways.
Figures are of held-out rows, in hundredths, with the standard deviation over seeds where there are several.
""",
        _by_way(found),
        _curves(found),
        _orders(found),
    ]
    return "\n".join(section for section in sections if section)


def _of(found: Sequence[Content], **wanted: Any) -> list[Content]:
    return [one for one in found if all(one[name] == value for name, value in wanted.items())]


def _figure(one: Content, point: Mapping[str, Any]) -> float:
    return _POINT * float(point["test"][one["metric"]])


def _best(one: Content) -> Mapping[str, Any]:
    """The smaller model with the best figure on held-out rows; the untouched model if there is no smaller one."""
    return max(one["points"][1:] or one["points"], key=lambda point: _figure(one, point))


def _kept(one: Content) -> Mapping[str, Any]:
    """The model that was chosen without the held-out rows."""
    return next(point for point in one["points"] if point["kept"])


def _by_way(found: Sequence[Content]) -> str:
    rows = []
    for data in SETS:
        of_set = [one for one in _of(found, data=data) if one["way"] in WAYS]
        if of_set:
            untouched = {one["seed"]: _figure(one, one["points"][0]) for one in of_set}
            metric = of_set[0]["metric"].replace("_", " ")
            rows.append(
                [data, "none", metric, str(len(untouched)), spread(list(untouched.values()), ".2f"), *[NONE] * 4]
            )
        for name, way in WAYS.items():
            if group := _of(of_set, way=name):
                rows.append([data, way.title, metric, str(len(group)), *_columns(group)])
    if not rows:
        return ""
    heads = ["set", "way", "metric", "seeds", "best on the path (optimistic)", "its fewer operations", "chosen"]
    return "\n".join(["## By way", "", _WAYS_TOLD, "", *table([*heads, "its fewer operations", "minutes"], rows), ""])


def _columns(group: Sequence[Content]) -> list[str]:
    columns = []
    for choice in (_best, _kept):
        points = [choice(one) for one in group]
        columns.append(spread([_figure(one, point) for one, point in zip(group, points, strict=True)], ".2f"))
        columns.append(f"{mean(point['estimated_speedup'] for point in points):.2f}x")
    return [*columns, f"{mean(one['seconds'] for one in group) / 60:.1f}"]


def _curves(found: Sequence[Content]) -> str:
    rows = []
    for model in sorted({one["model"] for one in found}):
        for data in CURVE_SETS:
            for name, way in CURVES.items():
                if group := _of(found, model=model, data=data, way=name):
                    figures = [spread(_relative(group, step), ".2f") for step in range(1, len(_SHARES) + 1)]
                    rows.append([data, model, way.title, str(len(group)), *figures])
    if not rows:
        return ""
    heads = ["set", "model", "normalisation", "seeds", *(f"{share:.0%}" for share in _SHARES)]
    return "\n".join(["## Head importance by normalisation", "", _CURVES_TOLD, "", *table(heads, rows), ""])


def _orders(found: Sequence[Content]) -> str:
    rows = []
    for data in SETS:
        for name, way in ORDERS.items():
            if group := _of(found, data=data, way=name):
                ends = [(one["points"][0], one["points"][-1]) for one in group]
                changes = [
                    _POINT * (after["test"][one["metric"]] - before["test"][one["metric"]])
                    for one, (before, after) in zip(group, ends, strict=True)
                ]
                losses = [after["test"]["loss"] - before["test"]["loss"] for before, after in ends]
                gone = mean(1 - after["encoder_parameters"] / before["encoder_parameters"] for before, after in ends)
                trials = f"{mean(one['trials'] for one in group):.0f}"
                about = [data, way.title, str(len(group)), trials, f"{gone:.2%}"]
                rows.append([*about, spread(losses, "+.4f"), spread(changes)])
    if not rows:
        return ""
    heads = ["set", "order", "seeds", "trials", "of the encoder removed", "held-out loss", "metric, points"]
    return "\n".join(["## What a pass inspects first", "", _ORDERS_TOLD, "", *table(heads, rows), ""])


def _relative(group: Sequence[Content], step: int) -> list[float]:
    """The metric after a step as a share of the untouched model's; of cells that have the step."""
    return [
        _figure(one, one["points"][step]) / _figure(one, one["points"][0]) for one in group if step < len(one["points"])
    ]

"""Writes ``docs/rank-results.md`` from the files of the cells alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.compress.tables import NONE, spread, table
from benchmarks.rank.grid import CURVE_SETS, CURVES, HEADS_GONE, ORDERS, SETS, WAYS, cells
from benchmarks.rank.pictures import shown_heads, shown_ways
from benchmarks.rank.reading import Content, cells_of, change, figure, relative

DOCUMENT = Path("docs/rank-results.md")

_WAYS_TOLD = """The counterpart of Table IV of the AxFormer paper. **Best on the path** is what the paper reports: of
all models that a way made, that which does best *on the held-out rows themselves*. It is **optimistic**, since those
rows chose it, the more so the more models there are. **Chosen** is what the way hands out, and the held-out rows had
no say in it: the cheapest model that is [certified](certificate.md) to have lost less than one point, else the
untouched one; of the pass the model with the lowest loss on the confirming rows. *Fewer operations* are those of the
whole model, at the lengths of the data."""
_SPEEDS = (1.25, 1.5, 2.0, 3.0)
"""Times fewer operations at which ways are compared."""
_NEARLY = 0.99
"""A model counts as so fast at this share of the speed, since steps of 5 % end at 1.2499 times."""
_SPEEDS_TOLD = """The change of the metric in points against the untouched model, of the first model on each path that has so
many times fewer operations, to a hundredth of them. Nothing was chosen here, so nothing is optimistic."""
_CURVES_TOLD = """Heads leave by first-order Taylor, a tenth of them in every step, ranked once on the untouched model
(Chiang and others, 2020, Figure 1). Figures are the metric as a share of the untouched model's, by the share of the
heads that have left; the paper finds `l1` best."""

_ORDERS_TOLD = """The pass with the preset `robust`, and all that it accepted. Importance takes one backward pass and no
name of a task. Changes are on held-out rows, against the untouched model."""


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
        _at_the_same_cost(found),
        _curves(found),
        _orders(found),
    ]
    return "\n".join(section for section in sections if section)


def _best(one: Content) -> Mapping[str, Any]:
    """The smaller model with the best figure on held-out rows; the untouched model if there is no smaller one."""
    return max(one["points"][1:] or one["points"], key=lambda point: figure(one, point))


def _kept(one: Content) -> Mapping[str, Any]:
    """The model that was chosen without the held-out rows."""
    return next(point for point in one["points"] if point["kept"])


def _by_way(found: Sequence[Content]) -> str:
    rows = []
    for data in SETS:
        of_set = [one for one in cells_of(found, data=data) if one["way"] in WAYS]
        if of_set:
            untouched = {one["seed"]: figure(one, one["points"][0]) for one in of_set}
            metric = of_set[0]["metric"].replace("_", " ")
            rows.append(
                [data, "none", metric, str(len(untouched)), spread(list(untouched.values()), ".2f"), *[NONE] * 4]
            )
        for name, way in WAYS.items():
            if group := cells_of(of_set, way=name):
                rows.append([data, way.title, metric, str(len(group)), *_columns(group)])
    if not rows:
        return ""
    heads = ["set", "way", "metric", "seeds", "best on the path (optimistic)", "its fewer operations", "chosen"]
    heads += ["its fewer operations", "minutes"]
    return "\n".join(["## By way", "", _WAYS_TOLD, "", *table(heads, rows), "", *_told_of_certificates(found)])


def _columns(group: Sequence[Content]) -> list[str]:
    columns = []
    for choice in (_best, _kept):
        points = [choice(one) for one in group]
        columns.append(spread([figure(one, point) for one, point in zip(group, points, strict=True)], ".2f"))
        columns.append(f"{mean(point['estimated_speedup'] for point in points):.2f}x")
    return [*columns, f"{mean(one['seconds'] for one in group) / 60:.1f}"]


def _told_of_certificates(found: Sequence[Content]) -> list[str]:
    """How often a certificate was had, and from how many rows."""
    certificates = [one["certificate"] for one in found if one["certificate"] is not None]
    if not certificates:
        return []
    rows = sorted({certificate["rows"] for certificate in certificates})
    had = sum(certificate["passed"] > 0 for certificate in certificates)
    earlier = sum(certificate["order"] == "deciding" for certificate in certificates)
    order = f" {earlier} of these runs tested what looked safest on the deciding rows first, and not along the path."
    return [
        f"A smaller model was certified in {had} of {len(certificates)} runs: {' or '.join(map(str, rows))} confirming rows "
        "seldom show that less than one point was lost, and fewer than 299 never show it of a share of right answers "
        f"([what rows can certify](certificate.md#what-rows-can-certify)).{order if earlier else ''}",
        "",
    ]


def _at_the_same_cost(found: Sequence[Content]) -> str:
    rows = []
    for data in SETS:
        for name, way in WAYS.items():
            group = cells_of(found, data=data, way=name)
            figures = [spread(_changes_at(group, speed)) for speed in _SPEEDS]
            if any(figure != NONE for figure in figures):
                rows.append([data, way.title, str(len(group)), *figures])
    if not rows:
        return ""
    heads = ["set", "way", "seeds", *(f"{speed:g}x" for speed in _SPEEDS)]
    return "\n".join(["## At the same cost", "", _SPEEDS_TOLD, "", *table(heads, rows), "", *shown_ways(found)])


def _changes_at(group: Sequence[Content], speed: float) -> list[float]:
    """The change in points of the first model with so many times fewer operations; of cells that have one."""
    fast = ([point for point in one["points"] if point["estimated_speedup"] >= _NEARLY * speed] for one in group)
    return [change(one, points[0]) for one, points in zip(group, fast, strict=True) if points]


def _curves(found: Sequence[Content]) -> str:
    rows = []
    for model in sorted({one["model"] for one in found}):
        for data in CURVE_SETS:
            for name, way in CURVES.items():
                if group := cells_of(found, model=model, data=data, way=name):
                    figures = [spread(_relative(group, step), ".2f") for step in range(1, len(HEADS_GONE) + 1)]
                    rows.append([data, model, way.title, str(len(group)), *figures])
    if not rows:
        return ""
    heads = ["set", "model", "normalisation", "seeds", *(f"{share:.0%}" for share in HEADS_GONE)]
    lines = ["## Head importance by normalisation", "", _CURVES_TOLD, "", *table(heads, rows), "", *shown_heads(found)]
    return "\n".join(lines)


def _orders(found: Sequence[Content]) -> str:
    rows = []
    for data in SETS:
        for name, way in ORDERS.items():
            if group := cells_of(found, data=data, way=name):
                ends = [(one["points"][0], one["points"][-1]) for one in group]
                changes = [change(one, one["points"][-1]) for one in group]
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
    return [share for one in group if (share := relative(one, step)) is not None]

"""Ranked pruning beside the pass and compression: a checkpoint, and one way to smaller models.

All ways with one seed come first, then the curves of head importance, then more seeds, and last the curves of the larger model.
"""

from collections.abc import Mapping, Sequence

from axformer.drawing.lines import Line, LineChart, lines_chart
from benchmarks.checkpoints import checkpoint_named
from benchmarks.finetune import BASE, LARGE_BASE
from benchmarks.harness import Arm, Cell, Content, Grid
from benchmarks.prune import by_prune, first_metric
from benchmarks.tables import NONE, change, grouped, points, spread, table, where, words

_SETS, _CURVE_SETS = ("rte", "stsb", "sst2"), ("stsb", "sst2")
_CHOICE = {"confirm": 0.4, "within_points": 1.0}
"""How the certified model is chosen, the same for all ways."""
_WAYS: Mapping[str, Arm] = {
    "l1": Arm({"method": "rank", "score": "l1", **_CHOICE}, title="L1"),
    "magnitude": Arm({"method": "rank", "score": "magnitude", **_CHOICE}, title="magnitude"),
    "taylor": Arm({"method": "rank", "score": "taylor", **_CHOICE}, title="Taylor"),
    "taylor-trained": Arm(
        {"method": "rank", "score": "taylor", "finetune_each": 1, **_CHOICE},
        title="Taylor, trained after each step",
        parts=("train",),
        finetune={"bf16": True},
    ),
    "pass": Arm({"confirm": 0.4}, "robust", "the pass (`robust`)"),
    "compress": Arm({"method": "compress", **_CHOICE}, title="compression"),
}
"""The counterparts of Table IV of the AxFormer paper."""
_CURVE = {"method": "rank", "units": "heads", "step": 0.1, "until": 0.9, "reestimate": False}
_CURVES = {
    f"heads-{norm}": Arm({**_CURVE, "normalisation": norm, "confirm": 0.0, "within_points": None}, title=norm)
    for norm in ("none", "l1", "l2")
}
"""The curves of head importance by normalisation, Figure 1 of *Why Can You Lay Off Heads?*."""
ARMS: Mapping[str, Arm] = {**_WAYS, **_CURVES}
GRID = Grid(
    "rank",
    ARMS,
    [
        *(Cell(checkpoint_named(name).seeded(0), way) for name in _SETS for way in _WAYS),
        *(Cell(checkpoint_named(name).seeded(0), curve) for name in _CURVE_SETS for curve in _CURVES),
        *(
            Cell(checkpoint_named(name).seeded(seed), arm)
            for seed in (1, 2)
            for arms, sets in ((_WAYS, _SETS), (_CURVES, _CURVE_SETS))
            for name in sets
            for arm in arms
        ),
        *(Cell(checkpoint_named(name).seeded(0, LARGE_BASE), curve) for name in _CURVE_SETS for curve in _CURVES),
    ],
    by_prune(first_metric),
)
_SPEEDS = (1.25, 1.5, 2.0, 3.0)
"""Times fewer operations at which ways are compared."""
_NEARLY = 0.99
"""A model counts as so fast at this share of the speed, since steps of 5 % end at 1.2499 times."""
_DRAWN = ("compress", "taylor")
"""The ways beside which others fall out of the picture."""
_MOST_DRAWN = 3.5
"""Pictures end at this many times fewer operations."""


def at_the_same_cost(cells: Sequence[Content]) -> str:
    """The change in points of the first model with so many times fewer operations."""
    rows = []
    for data in _SETS:
        for name, way in _WAYS.items():
            group = where(cells, data=data, arm=name)
            figures = [spread(_changes_at(group, speed)) for speed in _SPEEDS]
            if any(figure != NONE for figure in figures):
                rows.append([data, way.title, str(len(group)), *figures])
    return table(["set", "way", "seeds", *(f"{speed:g}x" for speed in _SPEEDS)], rows)


def _changes_at(group: Sequence[Content], speed: float) -> list[float]:
    fast = [
        [point for point in cell["report"]["path"] if point["estimated_speedup"] >= _NEARLY * speed] for cell in group
    ]
    return [change(cell, path[0]) for cell, path in zip(group, fast, strict=True) if path]


def heads(cells: Sequence[Content]) -> str:
    """The metric as a share of the untouched model's, by the share of the heads that have left."""
    rows = []
    curves = [cell for cell in cells if cell["arm"] in _CURVES]
    for model, data in sorted(grouped(curves, "model", "data")):
        for name, curve in _CURVES.items():
            group = where(curves, model=model, data=data, arm=name)
            figures = [spread([_relative(cell, step) for cell in group], ".2f") for step in (5, 7, 9)]
            rows.append([data, model, curve.title, *figures])
    return table(["set", "model", "normalisation", *(f"{share:.0%}" for share in (0.5, 0.7, 0.9))], rows)


def _relative(cell: Content, step: int) -> float:
    path = cell["report"]["path"]
    return points(cell, path[step]) / points(cell, path[0])


_OTHERS = (
    ("compress", "polished", "compressed and polished"),
    ("layers", "top-teacher", "layers dropped, trained with a teacher"),
    ("compress", "fisher-tuned", "Fisher masks, scalars tuned"),
    ("evidence", "paper", "the pass"),
)
"""Ways that other grids measured, of checkpoints of the same recipes: grid, arm and title."""


def pictures(cells: Sequence[Content], others: Mapping[str, Sequence[Content]]) -> dict[str, str]:
    """What speed costs by way, of the first seed: SVG by name.

    Args:
        others: the cells of the grids of :data:`_OTHERS`.
    """
    drawn = {}
    for data in _SETS:
        same = {"data": data, "seed": 0, "model": BASE}
        by_arm = {cell["arm"]: cell for cell in where(cells, **same)}
        metric = words(by_arm[_DRAWN[0]]["metric"])
        about = [f"{data}, MiniLM, held-out rows, one seed"]
        lines = [_line(_WAYS[way].title, by_arm[way]) for way in _DRAWN]
        for grid, arm, title in _OTHERS:
            found = [cell for cell in where(others[grid], **same, arm=arm) if "otherwise" not in cell]
            lines += [_line(title, _of_pass(cell) if grid == "evidence" else cell) for cell in found]
        axes = ("times fewer operations", f"change of {metric}, points")
        chart = LineChart(f"rank-{data}", "What speed costs, by way", about, *axes, lines, form="+.2f")
        drawn[f"rank-{data}"] = lines_chart(chart)
    return drawn


def _of_pass(cell: Content) -> Content:
    """A pass as a path of two models, since those between were not measured on held-out rows."""
    report = cell["report"]
    ends = [
        {**report["base"], "estimated_speedup": 1.0},
        {**report["pruned"], "estimated_speedup": report["estimated_speedup"]},
    ]
    return {**cell, "report": {"path": ends}}


def _line(title: str, cell: Content) -> Line:
    path = [point for point in cell["report"]["path"] if point["estimated_speedup"] <= _MOST_DRAWN]
    return Line(title, [(point["estimated_speedup"], change(cell, point)) for point in path])

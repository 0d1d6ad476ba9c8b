"""Pictures of ``docs/rank-results.md``, of the first seed: what speed costs by way, and the curves of head importance."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from axformer.drawing.lines import Line, Lines, lines_chart
from benchmarks.rank.grid import CURVE_SETS, CURVES, HEADS_GONE, SEEDS, SETS, WAYS
from benchmarks.rank.reading import Content, cells_of, change, relative

_DRAWN = ("compress", "taylor", "magnitude", "l1")
"""The ways with a model for every speed."""
_MOST_DRAWN = 3.5
"""Pictures end at this many times fewer operations."""


def write_pictures(found: Sequence[Content], images: Path) -> None:
    """Write every picture whose cells are all there."""
    for name, chart in {**_of_ways(found), **_of_heads(found)}.items():
        (images / f"{name}.svg").write_text(lines_chart(chart), encoding="utf-8")


def shown_ways(found: Sequence[Content]) -> list[str]:
    """The lines of Markdown that show what speed costs on each set."""
    return _shown(_of_ways(found))


def shown_heads(found: Sequence[Content]) -> list[str]:
    """The lines of Markdown that show the curves of head importance."""
    return _shown(_of_heads(found))


def _shown(charts: Mapping[str, Lines]) -> list[str]:
    return [
        line
        for name, chart in charts.items()
        for line in (f"![{chart.title}: {chart.subtitle[0]}](images/{name}.svg)", "")
    ]


def _of_ways(found: Sequence[Content]) -> dict[str, Lines]:
    charts = {}
    for data in SETS:
        by_way = {one["way"]: one for one in cells_of(found, data=data, seed=SEEDS[0])}
        if by_way.keys() >= {*_DRAWN}:
            name, metric = f"rank-{data}", by_way[_DRAWN[0]]["metric"].replace("_", " ")
            charts[name] = Lines(
                name,
                "What speed costs, by way",
                [f"{data}, MiniLM, held-out rows, one seed"],
                "times fewer operations",
                f"change of {metric}, points",
                [_line_of_way(by_way[way]) for way in _DRAWN],
                form="+.2f",
            )
    return charts


def _line_of_way(one: Content) -> Line:
    points = [point for point in one["points"] if point["estimated_speedup"] <= _MOST_DRAWN]
    return Line(WAYS[one["way"]].title, [(point["estimated_speedup"], change(one, point)) for point in points])


def _of_heads(found: Sequence[Content]) -> dict[str, Lines]:
    charts = {}
    for model in sorted({one["model"] for one in found}):
        for data in CURVE_SETS:
            by_norm = {one["way"]: one for one in cells_of(found, data=data, model=model, seed=SEEDS[0])}
            if by_norm.keys() >= {*CURVES}:
                name = f"rank-heads-{data}-{model}"
                charts[name] = Lines(
                    name,
                    "Heads removed, by normalisation",
                    [f"{data}, {model}, held-out rows, one seed"],
                    "share of the heads that have left",
                    f"{by_norm[next(iter(CURVES))]['metric'].replace('_', ' ')}, as a share of the untouched model's",
                    [_line_of_heads(CURVES[way].title, by_norm[way]) for way in CURVES],
                    form=".2f",
                )
    return charts


def _line_of_heads(title: str, one: Content) -> Line:
    shares = (0.0, *HEADS_GONE)
    values = [(share, relative(one, step)) for step, share in enumerate(shares)]
    return Line(title, [(share, value) for share, value in values if value is not None])

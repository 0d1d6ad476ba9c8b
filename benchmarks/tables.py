"""What the tables of all grids share: Markdown, means over seeds, and cells by what they are of."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from axformer.reporting.markdown import Markdown
from axformer.reporting.rendering import Table
from benchmarks.harness import Content, Grid

NONE = "–"
POINT = 100.0
"""Points (hundredths) in one."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return Table(list(map(Markdown, head)), [list(map(Markdown, row)) for row in rows]).markdown()


def spread(values: Sequence[float], form: str = "+.2f") -> str:
    """The mean, with the standard deviation if there are several values."""
    if not values:
        return NONE
    digits = form.removeprefix("+")
    return f"{mean(values):{form}}" + (f" ± {stdev(values):{digits}}" if len(values) > 1 else "")


def where(cells: Iterable[Content], **wanted: Any) -> list[Content]:
    """The cells with these values."""
    return [cell for cell in cells if all(cell[name] == value for name, value in wanted.items())]


def grouped(cells: Iterable[Content], *names: str) -> dict[tuple[Any, ...], list[Content]]:
    """Cells with the same values of these names, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Content]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell[name] for name in names), []).append(cell)
    return groups


def points(cell: Content, point: Mapping[str, Any]) -> float:
    """A model's metric on held-out rows, in points."""
    return POINT * float(point["test"][cell["metric"]])


def change(cell: Content, point: Mapping[str, Any]) -> float:
    """The change of a model's metric on held-out rows against the untouched model, in points."""
    return points(cell, point) - points(cell, cell["report"]["path"][0])


def counted(grid: Grid, cells: Sequence[Content]) -> str:
    """How many cells of a grid are measured."""
    planned = {cell.name for cell in grid.cells}
    there = sum(cell["cell"] in planned for cell in cells)
    otherwise = sum("otherwise" in cell for cell in cells if cell["cell"] in planned)
    earlier = sum(cell["cell"] not in planned for cell in cells)
    told = f"{there} of {len(planned)} cells"
    if otherwise:
        told += f" ({otherwise} of them by an earlier version)"
    return told + (f" and {earlier} of ways that are not kept" if earlier else "")


def words(name: str) -> str:
    """A name of a metric or of a strategy for people."""
    return name.replace("_", " ")

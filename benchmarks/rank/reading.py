"""The cells that were measured, and what is read of them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path("benchmarks/results/rank")
Content = Mapping[str, Any]
_POINT = 100.0


def read_cells(results: Path) -> list[Content]:
    """All existing cells, in the order of their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]


def cells_of(found: Sequence[Content], **wanted: Any) -> list[Content]:
    """The cells with these values."""
    return [one for one in found if all(one[name] == value for name, value in wanted.items())]


def figure(one: Content, point: Mapping[str, Any]) -> float:
    """A model's metric on held-out rows, in points (hundredths)."""
    return _POINT * float(point["test"][one["metric"]])


def change(one: Content, point: Mapping[str, Any]) -> float:
    """The change of a model's metric on held-out rows against the untouched model, in points."""
    return figure(one, point) - figure(one, one["points"][0])


def relative(one: Content, step: int) -> float | None:
    """The metric after a step as a share of the untouched model's; None if there was no such step."""
    points = one["points"]
    return figure(one, points[step]) / figure(one, points[0]) if step < len(points) else None

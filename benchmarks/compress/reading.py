"""What the files of cells say."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path("benchmarks/results/compress")
"""Where the cells are kept, with the project: they take hours to measure."""
FORMAT = "axformer-compress/1"
Content = Mapping[str, Any]
"""A cell's file."""
POINT = 100.0
"""Of one, in hundredths."""


def read_cells(results: Path) -> list[Content]:
    """All cells that are there, by their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]


def point_at(one: Content, budget: float) -> Content | None:
    """The model of a budget; None where the run had no other than that of the budget before."""
    return next((point for point in one["points"] if point.get("budget") == budget), None)


def change_at(one: Content, budget: float) -> float | None:
    """How far the metric changed on held-out rows, in points."""
    point = point_at(one, budget)
    return None if point is None else POINT * float(point["change"]["value"])

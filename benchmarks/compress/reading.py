"""Reads the files of cells."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.compress.grid import VARIANTS

RESULTS = Path("benchmarks/results/compress")
"""Directory of the cells. They belong to the repository, since they take hours to measure."""
FORMAT = "axformer-compress/1"
Content = Mapping[str, Any]
"""The content of a cell's file."""
POINT = 100.0
"""Points (hundredths) in one."""


def read_cells(results: Path) -> list[Content]:
    """All existing cells, in the order of their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]


def is_outdated(one: Content) -> bool:
    """Whether the method has changed since the cell was measured."""
    return bool(one.get("revision", 1) < VARIANTS[one["variant"]].revision)


def point_at(one: Content, budget: float) -> Content | None:
    """The figures of a budget's model; None if the run had the same model as for the previous budget."""
    return next((point for point in one["points"] if point.get("budget") == budget), None)


def change_at(one: Content, budget: float) -> float | None:
    """The change of the metric on held-out rows, in points; None if there is no model of this budget."""
    point = point_at(one, budget)
    return None if point is None else POINT * float(point["change"]["value"])

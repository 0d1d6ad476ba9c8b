"""What experiments keep, so that they may be stopped and started again: sets made once, and files that are never in part."""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol, TypeVar

from benchmarks.sets.catalog import SETS
from benchmarks.sets.parts import Parts, sample


class Named(Protocol):
    """A cell of an experiment."""

    @property
    def name(self) -> str:
        """The name of the cell and of its file."""


N = TypeVar("N", bound=Named)


def chosen(cells: Sequence[N], only: Sequence[str]) -> list[N]:
    """The cells whose names match one of these patterns (``sst2-*``), or all cells without patterns.

    Raises:
        ValueError: a pattern matches nothing.
    """
    for pattern in only:
        if not any(fnmatchcase(cell.name, pattern) for cell in cells):
            raise ValueError(f"no cell is called '{pattern}'; names are like {cells[0].name}")
    return [cell for cell in cells if not only or any(fnmatchcase(cell.name, pattern) for pattern in only)]


def prepare_set(name: str, source: Path, sets: Path, rows: int | None = None) -> None:
    """Write a set, if it is not there.

    Args:
        name: of the set, and of its directory below ``sets``.
        source: the public data sets.
        sets: where the prepared ones lie.
        rows: most of each part; all where None.
    """
    if (sets / name).is_dir():
        return
    parts, partial = SETS[name](source), sets / f"{name}.partial"
    if rows is not None:
        parts = Parts(*(sample(part, rows) for part in (parts.train, parts.validation, parts.test)))
    parts.write(partial)
    partial.rename(sets / name)


def write_whole(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that is never there in part."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    partial.rename(file)

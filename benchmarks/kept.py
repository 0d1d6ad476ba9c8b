"""What experiments keep, so that they may be stopped and started again: sets made once, and files that are never in part."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.sets.catalog import SETS
from benchmarks.sets.parts import Parts, sample


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

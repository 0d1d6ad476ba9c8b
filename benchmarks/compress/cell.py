"""One cell: prepare its set, train its checkpoint, draw its rows, and measure."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.compress.grid import VARIANTS, Cell
from benchmarks.compress.ground import RowFiles
from benchmarks.compress.measure import measure
from benchmarks.compress.reading import FORMAT, Content
from benchmarks.running import Place
from benchmarks.sets.parts import sample

CALIBRATE = 1000
"""Number of training rows to calibrate on."""
TEST = 2000
"""Largest number of held-out rows to measure on."""
FEWER = {"squad": (200, 500)}
"""Both numbers for sets with long rows."""


def measure_cell(cell: Cell, place: Place) -> Content:
    """Measure a cell; its set, its checkpoint and the rows that are drawn from the set are kept for other cells.

    Raises:
        CannotTrainError: its checkpoint cannot be trained.
    """
    checkpoint, variant = cell.checkpoint, VARIANTS[cell.variant]
    home = place.trained(checkpoint)
    files = row_files(checkpoint.data, place.sets, place.home / "compress")
    if variant.calibrates_on_all:
        files = replace(files, calibrate=checkpoint.rows(place.sets, "train"))
    about: dict[str, Any] = {"format": FORMAT, "cell": cell.name, "data": checkpoint.data, "model": checkpoint.family}
    about |= {"seed": checkpoint.seed, "variant": cell.variant, "revision": variant.revision}
    return about | measure(cell, variant, home, files)


def row_files(name: str, sets: Path, drawn: Path) -> RowFiles:
    """The data of a set's cells. With a fixed seed, calibration rows are drawn from the training rows, and the rows to measure
    on from the held-out rows if there are many."""
    calibrate, test = FEWER.get(name, (CALIBRATE, TEST))
    return RowFiles(
        sets / name / "validation.jsonl",
        _drawn(sets / name / "train.jsonl", calibrate, drawn / name),
        _drawn(sets / name / "test.jsonl", test, drawn / name),
    )


def _drawn(rows: Path, count: int, directory: Path) -> Path:
    """A file with ``count`` rows of another file, or all if it has fewer."""
    with rows.open(encoding="utf-8") as lines:
        chosen = sample(list(lines), count)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{rows.stem}-{count}.jsonl"
    file.write_text("".join(chosen), encoding="utf-8")
    return file

"""One cell: prepare its set, train its checkpoint, draw its rows, measure, and write the results.

Existing files are kept. The cell's own file is written last, and atomically.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.compress.grid import VARIANTS, Cell
from benchmarks.compress.ground import RowFiles
from benchmarks.compress.measure import measure
from benchmarks.compress.reading import FORMAT, is_outdated
from benchmarks.kept import prepare_set, write_whole
from benchmarks.sets.parts import sample
from benchmarks.train_checkpoints import make

CALIBRATE = 1000
"""Number of training rows to calibrate on."""
TEST = 2000
"""Largest number of held-out rows to measure on."""
FEWER = {"squad": (200, 500)}
"""Both numbers for sets with long rows."""


@dataclass(frozen=True)
class Place:
    """Directories and settings."""

    source: Path
    """Directory of the public data sets."""
    home: Path
    """Directory for sets and checkpoints."""
    results: Path
    """Directory for the results of cells."""
    threads: int
    """Number of threads of a training."""
    bfloat16: bool
    """Whether trainings compute in bfloat16."""

    def has(self, cell: Cell) -> bool:
        """Whether a cell was measured, and the method has not changed since."""
        file = self.file(cell)
        return file.is_file() and not is_outdated(json.loads(file.read_text(encoding="utf-8")))

    def file(self, cell: Cell) -> Path:
        """The file with the results of a cell."""
        return self.results / f"{cell.name}.json"


def run_cell(cell: Cell, place: Place) -> str:
    """Measure a cell if it is missing or outdated. Returns the outcome as a text for users."""
    file, checkpoint = place.file(cell), cell.checkpoint
    if place.has(cell):
        return "is there"
    sets, checkpoints = place.home / "sets", place.home / "checkpoints"
    prepare_set(checkpoint.data, place.source, sets)
    if not make(checkpoint, sets, checkpoints, place.threads, place.bfloat16):
        return f"FAILED to train; see {checkpoints / checkpoint.name}.log"
    files, variant = row_files(checkpoint.data, sets, place.home / "compress"), VARIANTS[cell.variant]
    if variant.calibrates_on_all:
        files = replace(files, calibrate=checkpoint.rows(sets, "train"))
    about: dict[str, Any] = {"format": FORMAT, "cell": cell.name, "data": checkpoint.data, "model": checkpoint.family}
    content = measure(cell, variant, checkpoints / checkpoint.name, files)
    about |= {"seed": checkpoint.seed, "variant": cell.variant, "revision": variant.revision}
    write_whole(file, about | content)
    return "done"


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

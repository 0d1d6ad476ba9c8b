"""One cell: prepare its set, train its checkpoint, draw its rows, measure, and keep what came of it.

Whatever is there already is kept. The cell's own file is written last and whole.
"""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.compress.grid import VARIANTS, Cell
from benchmarks.compress.ground import RowFiles
from benchmarks.compress.measure import measure
from benchmarks.compress.reading import FORMAT
from benchmarks.kept import prepare_set, write_whole
from benchmarks.sets.parts import sample
from benchmarks.train_checkpoints import make

CALIBRATE = 1000
"""Training rows that weights are fitted on."""
TEST = 2000
"""Held-out rows that judge, at most."""
FEWER = {"squad": (200, 500)}
"""The same of sets whose rows are long."""


@dataclass(frozen=True)
class Place:
    """Where everything lies."""

    source: Path
    """The public data sets."""
    home: Path
    """For sets and checkpoints."""
    results: Path
    """For what each cell leaves."""
    threads: int
    """Of a training."""
    bfloat16: bool
    """Whether trainings compute in it."""

    def file(self, cell: Cell) -> Path:
        """What a cell leaves."""
        return self.results / f"{cell.name}.json"


def run_cell(cell: Cell, place: Place) -> str:
    """Measure a cell that is not there yet; gives what became of it, for people."""
    file, checkpoint = place.file(cell), cell.checkpoint
    if file.is_file():
        return "is there"
    sets, checkpoints = place.home / "sets", place.home / "checkpoints"
    prepare_set(checkpoint.data, place.source, sets)
    if not make(checkpoint, sets, checkpoints, place.threads, place.bfloat16):
        return f"FAILED to train; see {checkpoints / checkpoint.name}.log"
    files = row_files(checkpoint.data, sets, place.home / "compress")
    about = {"format": FORMAT, "cell": cell.name, "data": checkpoint.data, "model": checkpoint.family}
    content = measure(cell, VARIANTS[cell.variant], checkpoints / checkpoint.name, files)
    write_whole(file, about | {"seed": checkpoint.seed, "variant": cell.variant} | content)
    return "done"


def row_files(name: str, sets: Path, drawn: Path) -> RowFiles:
    """The data of a set's cells: rows to calibrate on are drawn from those that trained, by a fixed seed, and those that judge
    from those that are held out, where there are many."""
    calibrate, test = FEWER.get(name, (CALIBRATE, TEST))
    return RowFiles(
        sets / name / "validation.jsonl",
        _drawn(sets / name / "train.jsonl", calibrate, drawn / name),
        _drawn(sets / name / "test.jsonl", test, drawn / name),
    )


def _drawn(rows: Path, count: int, directory: Path) -> Path:
    """A file of so many of a file's rows, or of all."""
    with rows.open(encoding="utf-8") as lines:
        chosen = sample(list(lines), count)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{rows.stem}-{count}.jsonl"
    file.write_text("".join(chosen), encoding="utf-8")
    return file

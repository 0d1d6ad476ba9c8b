"""One harness for every measurement: a grid of cells declared as data, one JSON file a cell, tables and pages from the cells.

A cell that is there is not measured again, unless it says that it was measured otherwise than is asked for now. A failed cell
stops no other, so a run may be stopped and started again at any time, also on another machine that has the results.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch

from benchmarks.checkpoints import Checkpoint, make
from benchmarks.sets.catalog import SETS
from benchmarks.sets.parts import Parts, sample

RESULTS = Path(__file__).parent / "results"
"""Where cells are kept, a directory for each grid. They belong to the repository, since they take hours to measure."""
FORMAT = "axformer-cell/1"
Content = Mapping[str, Any]
"""The content of a cell's file."""


class CellError(Exception):
    """A cell could not be measured; the message says why."""


@dataclass(frozen=True)
class Arm:
    """What is asked of a run."""

    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Those that differ from the preset's."""
    preset: str = "paper"
    title: str = ""
    """For people, where the name does not say it."""
    parts: tuple[str, ...] = ()
    """What is given beside the usual parts: ``train``, ``calibrate``, ``unlabelled``."""
    usual_parts: tuple[str, ...] = ("validation", "test")
    forms: tuple[str, ...] = ("compact",)
    finetune: Mapping[str, Any] = field(default_factory=dict)
    """The settings of a training."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """The most rows of a part; all rows where it is not named."""
    is_measured: bool = True
    """Whether cells may still be measured. Others are shown as an earlier version measured them."""


@dataclass(frozen=True)
class Cell:
    """One run: a checkpoint, which names its set, its model and its seed, under one arm."""

    checkpoint: Checkpoint
    arm: str
    rows: Mapping[str, int] = field(default_factory=dict)
    """The most rows of a part where they are others than the arm's."""

    @property
    def name(self) -> str:
        """The name of the cell and of its file."""
        return f"{self.checkpoint.name}-{self.arm}"


@dataclass(frozen=True)
class Place:
    """Where things lie, and what computes."""

    source: Path
    """Directory of the public sets."""
    home: Path
    """Where sets, checkpoints and runs that go on are kept."""
    results: Path = RESULTS
    """Where cells are kept."""
    rows: int | None = None
    """The most rows of each part of a set, for a trial run; None takes the sets as they are."""
    threads: int = 1
    bfloat16: bool = False
    """Whether checkpoints are fine-tuned in bfloat16, where the processor multiplies it faster."""
    device: str = "cpu"
    """What trains and runs, as PyTorch calls it."""

    @property
    def sets(self) -> Path:
        """Directory of the prepared sets."""
        return self.home / "sets"

    def prepare(self, name: str) -> None:
        """Write a set, if it is not there."""
        if (self.sets / name).is_dir():
            return
        parts, partial = SETS[name](self.source), self.sets / f"{name}.partial"
        if self.rows is not None:
            parts = Parts(*(sample(part, self.rows) for part in (parts.train, parts.validation, parts.test)))
        parts.write(partial)
        partial.rename(self.sets / name)

    def trained(self, checkpoint: Checkpoint) -> Path:
        """The directory of a checkpoint, which is trained if it is not there.

        Raises:
            CellError: its training failed; the log says why.
        """
        self.prepare(checkpoint.data)
        output = self.home / "checkpoints"
        if not make(checkpoint, self.sets, output, self.threads, self.bfloat16, self.device):
            raise CellError(f"the training failed; see {output / checkpoint.name}.log")
        return output / checkpoint.name


Measure = Callable[[Cell, Arm, Place], Content]


@dataclass(frozen=True)
class Grid:
    """Cells in the order of their worth, so that whatever time there is gives the most, and how one is measured."""

    name: str
    arms: Mapping[str, Arm]
    cells: Sequence[Cell]
    measure: Measure

    def chosen(self, only: Sequence[str] = ()) -> list[Cell]:
        """The cells whose names match one of these patterns (``sst2-*``), or all cells without patterns.

        Raises:
            ValueError: a pattern matches nothing.
        """
        for pattern in only:
            if not any(fnmatchcase(cell.name, pattern) for cell in self.cells):
                raise ValueError(f"no cell is called '{pattern}'; names are like {self.cells[0].name}")
        return [cell for cell in self.cells if not only or any(fnmatchcase(cell.name, one) for one in only)]

    def file(self, cell: Cell, place: Place) -> Path:
        """The file of a cell."""
        return place.results / self.name / f"{cell.name}.json"

    def stands(self, cell: Cell, place: Place) -> bool:
        """Whether a cell was measured as it is asked for now."""
        file = self.file(cell, place)
        return file.is_file() and "otherwise" not in json.loads(file.read_text(encoding="utf-8"))

    def missing(self, only: Sequence[str], place: Place) -> list[Cell]:
        """The cells that a run would measure."""
        return [cell for cell in self.chosen(only) if not self.stands(cell, place)]

    def run(self, only: Sequence[str], place: Place, minutes: float, *, again: bool = False) -> bool:
        """Measure missing cells until the minutes are over; gives whether none failed.

        The last cell is measured to its end, so a run may take longer by that.

        Args:
            only: patterns of names.
            place: where things lie.
            minutes: no further cell begins after that.
            again: measure also the cells that are there.
        """
        torch.set_num_threads(place.threads)
        os.environ["OMP_NUM_THREADS"] = str(place.threads)  # of the processes that are started here
        missing, succeeded = self.chosen(only) if again else self.missing(only, place), True
        began = time.monotonic()
        print(f"{self.name}: {len(missing)} of {len(self.chosen(only))} cells are to be measured", flush=True)
        for count, cell in enumerate(missing):
            if time.monotonic() - began >= 60 * minutes:
                print(f"{minutes:g} minutes are over; {len(missing) - count} cells are still missing", flush=True)
                break
            started = time.monotonic()
            outcome = self._measured(cell, place)
            succeeded = succeeded and outcome == "done"
            print(f"{cell.name}: {outcome}, {time.monotonic() - started:.0f} s", flush=True)
        return succeeded

    def _measured(self, cell: Cell, place: Place) -> str:
        """Measure a cell and keep it; the outcome for people."""
        checkpoint = cell.checkpoint
        about: dict[str, Any] = {"format": FORMAT, "family": self.name, "cell": cell.name, "data": checkpoint.data}
        about |= {"model": checkpoint.family, "seed": checkpoint.seed, "arm": cell.arm, "rows": place.rows}
        try:
            content = about | dict(self.measure(cell, self.arms[cell.arm], place))
        except CellError as error:
            return f"FAILED: {error}"
        file = self.file(cell, place)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        partial.rename(file)
        return "done"


def read_cells(grid: str, results: Path = RESULTS) -> list[Content]:
    """All measured cells of a grid, in the order of their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted((results / grid).glob("*.json"))]

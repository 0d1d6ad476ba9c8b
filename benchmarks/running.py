"""Experiments whose cells are checkpoints fine-tuned on public sets, and the command that measures their missing cells."""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

import torch
import typer

from benchmarks.checkpoints import Checkpoint
from benchmarks.kept import Named, prepare_set, write_whole
from benchmarks.train_checkpoints import make


class OfCheckpoint(Named, Protocol):
    """A cell of one checkpoint."""

    @property
    def checkpoint(self) -> Checkpoint:
        """Its checkpoint."""


C = TypeVar("C", bound=OfCheckpoint)
Content = Mapping[str, Any]


class CannotTrainError(Exception):
    """The checkpoint of a cell cannot be trained."""


@dataclass(frozen=True)
class Place:
    """Where things lie, and what computes."""

    source: Path
    """Directory of the public sets."""
    home: Path
    """Where sets, checkpoints and the state of trainings are kept."""
    results: Path
    """Where the cells are kept."""
    threads: int
    bfloat16: bool
    """Whether checkpoints are fine-tuned in bfloat16."""

    @property
    def sets(self) -> Path:
        """Directory of the prepared sets."""
        return self.home / "sets"

    def file(self, cell: Named) -> Path:
        """The file with the results of a cell."""
        return self.results / f"{cell.name}.json"

    def trained(self, checkpoint: Checkpoint) -> Path:
        """The directory of a checkpoint, which is trained if it is not there.

        Raises:
            CannotTrainError: its training failed; the log says why.
        """
        output = self.home / "checkpoints"
        prepare_set(checkpoint.data, self.source, self.sets)
        if not make(checkpoint, self.sets, output, self.threads, self.bfloat16):
            raise CannotTrainError(f"FAILED to train; see {output / checkpoint.name}.log")
        return output / checkpoint.name


@dataclass(frozen=True)
class Experiment(Generic[C]):
    """Cells, how one is measured, and the document about all."""

    cells: Callable[[Sequence[str]], Sequence[C]]
    """The cells whose names match a pattern, all without patterns; raises ``ValueError`` where a pattern matches nothing."""
    measure: Callable[[C, Place], Content]
    results: Path
    """Where the cells are kept. They belong to the repository, since they take hours to measure."""
    document: Path
    write: Callable[[Path, Path], None]
    """Writes the document from the directory of the cells, if there are any."""
    is_current: Callable[[Content], bool] = lambda _: True
    """Whether a cell still stands, given its content."""

    def has(self, cell: C, place: Place) -> bool:
        """Whether a cell was measured, and still stands."""
        file = place.file(cell)
        return file.is_file() and self.is_current(json.loads(file.read_text(encoding="utf-8")))

    def run(self, cell: C, place: Place) -> str:
        """Measure a cell that is missing and keep it; returns the outcome as a text for users."""
        if self.has(cell, place):
            return "is there"
        try:
            write_whole(place.file(cell), self.measure(cell, place))
        except CannotTrainError as error:
            return str(error)
        return "done"


def resumable(measure: Callable[[C, Path, Path, Path], Content]) -> Callable[[C, Place], Content]:
    """A measurement that gets three directories: of its checkpoint, of the sets, and for the state of its trainings, with
    which an interrupted cell goes on."""

    def measured(cell: C, place: Place) -> Content:
        state = place.home / "trainings" / cell.name
        content = measure(cell, place.trained(cell.checkpoint), place.sets, state)
        shutil.rmtree(state, ignore_errors=True)
        return content

    return measured


def run_command(experiment: Experiment[C]) -> None:
    """Be the command of an experiment."""

    def main(
        source: Annotated[Path, typer.Option(help="directory of the public sets")],
        home: Annotated[Path, typer.Option(help="where sets and checkpoints are kept")] = Path("var/evidence"),
        results: Annotated[Path, typer.Option(help="where the cells are kept")] = experiment.results,
        output: Annotated[Path, typer.Option(help="document to write")] = experiment.document,
        only: Annotated[list[str] | None, typer.Option(help="pattern of a cell's name; may be repeated")] = None,
        limit: Annotated[int | None, typer.Option(min=1, help="most cells to measure now")] = None,
        threads: Annotated[int, typer.Option(min=1, help="of trainings and of runs")] = 1,
        bfloat16: Annotated[bool, typer.Option(help="fine-tune checkpoints in bfloat16")] = False,
    ) -> None:
        """Measure the missing cells and write the document."""
        try:
            chosen = experiment.cells(only or ())
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        is_whole = _measure(experiment, chosen, Place(source, home, results, threads, bfloat16), limit)
        experiment.write(results, output)
        if not is_whole:
            raise typer.Exit(1)

    typer.run(main)


def _measure(experiment: Experiment[C], cells: Sequence[C], place: Place, limit: int | None) -> bool:
    """Measure what is missing; gives whether nothing failed."""
    torch.set_num_threads(place.threads)
    os.environ["OMP_NUM_THREADS"] = str(place.threads)  # of the processes that are started here
    missing = [cell for cell in cells if not experiment.has(cell, place)]
    print(f"{len(cells) - len(missing)} of {len(cells)} cells are there", flush=True)
    outcomes = []
    for cell in missing[:limit]:
        started = time.monotonic()
        outcomes.append(experiment.run(cell, place))
        print(f"{cell.name}: {outcomes[-1]}, {time.monotonic() - started:.0f} s", flush=True)
    return all(outcome == "done" for outcome in outcomes)

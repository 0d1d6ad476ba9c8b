"""Measure the missing cells of an experiment whose cells are checkpoints fine-tuned on public sets, one after another."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from benchmarks.checkpoints import Checkpoint
from benchmarks.kept import Named, prepare_set, write_whole
from benchmarks.train_checkpoints import make


class OfCheckpoint(Named, Protocol):
    """A cell of one checkpoint."""

    @property
    def checkpoint(self) -> Checkpoint:
        """Its checkpoint."""


C = TypeVar("C", bound=OfCheckpoint)


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


Measure = Callable[[C, Path, Path, Path], Mapping[str, Any]]
"""Measures a cell, given the directories of its checkpoint, of the sets, and of the state of its trainings."""


def measure_missing(cells: Sequence[C], place: Place, measure: Measure[C], limit: int | None) -> None:
    """Measure the cells that are not there, and keep each with the project. An interrupted cell goes on with its training."""
    torch.set_num_threads(place.threads)
    missing = [cell for cell in cells if not (place.results / f"{cell.name}.json").is_file()]
    print(f"{len(cells) - len(missing)} of {len(cells)} cells are there", flush=True)
    sets, checkpoints = place.home / "sets", place.home / "checkpoints"
    for cell in missing[:limit]:
        started, checkpoint = time.monotonic(), cell.checkpoint
        prepare_set(checkpoint.data, place.source, sets)
        if not make(checkpoint, sets, checkpoints, place.threads, place.bfloat16):
            print(f"{cell.name}: FAILED to train; see {checkpoints / checkpoint.name}.log", flush=True)
            continue
        state = place.home / "trainings" / cell.name
        content = measure(cell, checkpoints / checkpoint.name, sets, state)
        write_whole(place.results / f"{cell.name}.json", content)
        shutil.rmtree(state, ignore_errors=True)
        print(f"{cell.name}: done, {time.monotonic() - started:.0f} s", flush=True)

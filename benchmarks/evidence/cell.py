"""One cell of the experiment: prepare its set, train its checkpoint, run its pass, and keep what the report says.

Whatever is there already is kept: sets, checkpoints, and the cell's own file, which is written last and whole. A file
whose cell was measured otherwise than is asked for now is replaced.
"""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from axformer.plan.plan import read_plan_file
from benchmarks.checkpoints import Checkpoint
from benchmarks.evidence.grid import ARMS, Cell
from benchmarks.evidence.standing import FORMAT, stands
from benchmarks.kept import prepare_set, write_whole
from benchmarks.passes import pass_command, run_pass
from benchmarks.results_table import metric_of
from benchmarks.rows import Row, read_rows, write_rows
from benchmarks.sets.parts import sample
from benchmarks.split import label_of
from benchmarks.train_checkpoints import make

_KEPT = (
    *("task", "base", "pruned", "comparison", "finding", "estimated_speedup", "one_position_ms", "trials", "seconds"),
    *("removed", "hard_attention", "config", "data", "latency", "environment"),
)
"""What of a report is kept whole; its forms are not asked about here."""
_KEPT_OF_A_POINT = ("seq", "kept", "loss", "parameters", "estimated_speedup")


@dataclass(frozen=True)
class Place:
    """Where everything lies."""

    source: Path
    """The public data sets."""
    home: Path
    """For sets, checkpoints, and passes that go on."""
    results: Path
    """For what each cell leaves."""
    rows: int | None
    """Most rows of each part of a set; null takes the sets as they are. What was measured so is marked."""
    threads: int
    bfloat16: bool

    @property
    def sets(self) -> Path:
        """The prepared sets."""
        return self.home / "sets"

    def file(self, cell: Cell) -> Path:
        """What a cell leaves."""
        return self.results / f"{cell.name}.json"


def run_cell(cell: Cell, place: Place) -> str:
    """Measure a cell that is not there yet, or not as it is asked for now; gives what became of it, for people."""
    file, checkpoint = place.file(cell), cell.checkpoint
    if stands(file):
        return "is there"
    prepare_set(checkpoint.data, place.source, place.sets, place.rows)
    if not make(checkpoint, place.sets, place.home / "checkpoints", place.threads, place.bfloat16):
        return f"FAILED to train; see {place.home / 'checkpoints' / checkpoint.name}.log"
    home, result = place.home / "checkpoints" / checkpoint.name, place.home / "passes" / cell.name
    arm = ARMS[cell.arm]
    judged = checkpoint if arm.validation_rows is None else _with_fewer_rows(checkpoint, arm.validation_rows, place)
    command = pass_command(judged, home, place.sets, result, arm.preset)
    knobs = {"seed": checkpoint.seed, **arm.knobs}
    outcome = run_pass([*command, *(f"--set={name}={value}" for name, value in knobs.items())], home, result)
    if outcome.startswith("FAILED"):
        return outcome
    report = json.loads((result / "report.json").read_text(encoding="utf-8"))
    write_whole(file, _content(cell, place, report, read_plan_file(result).source.sha256))
    shutil.rmtree(result)
    return "done"


def _with_fewer_rows(checkpoint: Checkpoint, rows: int, place: Place) -> Checkpoint:
    """The checkpoint with a set whose validation part is a sample of its own, which is written if it is not there."""
    fewer = replace(checkpoint, data=f"{checkpoint.data}-{rows}")
    validation, test = fewer.rows(place.sets, "validation"), fewer.rows(place.sets, "test")
    if not test.is_file():
        write_rows(validation, sample(read_rows(checkpoint.rows(place.sets, "validation"), Row), rows, label_of))
        shutil.copyfile(checkpoint.rows(place.sets, "test"), test)
    return fewer


def _content(cell: Cell, place: Place, report: dict[str, Any], sha256: str) -> dict[str, Any]:
    """What is kept of a pass over the checkpoint with this digest, which another machine's training would not have."""
    checkpoint = cell.checkpoint
    return {
        "format": FORMAT,
        "cell": cell.name,
        "data": checkpoint.data,
        "model": checkpoint.family,
        "seed": checkpoint.seed,
        "checkpoint": sha256,
        "arm": cell.arm,
        "rows": place.rows,
        "metric": metric_of(checkpoint, report["base"]["test"]),
        "report": {name: report[name] for name in _KEPT} | {"path": [_point(point) for point in report["path"]]},
    }


def _point(point: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a model on the path: its size, and its losses on each part of the data."""
    losses = {name: point[name] and point[name]["loss"] for name in ("confirming", "test")}
    return {name: point[name] for name in _KEPT_OF_A_POINT} | losses

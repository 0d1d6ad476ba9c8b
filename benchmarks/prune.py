"""Measure a cell by ``axformer prune``, as a person would, in a process of its own, and keep its report."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from axformer.plan.plan import read_plan_file
from benchmarks.checkpoints import Checkpoint, run_logged
from benchmarks.harness import Arm, Cell, CellError, Content, Measure, Place
from benchmarks.sets.parts import alike, sample

PRUNE = ["-c", "from axformer.cli.main import app; app(prog_name='axformer')", "prune"]
_PART_OF_SET = {"calibrate": "train", "unlabelled": "validation"}
"""What a part of a run is taken from, where it is called otherwise."""
_OPTIONS = {"validation": "data"}
_ORDERED = ("paper", "robust")
"""Presets of a pass in an order that may be chosen; `published` has the authors' own."""
MetricOf = Callable[[Checkpoint, Mapping[str, float]], str]
More = Callable[[Path, Cell, Place], Content]


def usual_metric(checkpoint: Checkpoint, figures: Mapping[str, float]) -> str:
    """The metric that the paper gives for the set, by the name that the report gives it; else the first."""
    named = [name for name in checkpoint.metrics if name in figures]
    return named[0] if named else first_metric(checkpoint, figures)


def first_metric(_: Checkpoint, figures: Mapping[str, float]) -> str:
    """The metric that is certified: the first that is not the loss, if there is one."""
    return next((name for name in figures if name != "loss"), "loss")


@contextmanager
def pruned(cell: Cell, arm: Arm, place: Place) -> Iterator[Path]:
    """The result of a cell's run, which is removed afterwards.

    Raises:
        CellError: the run failed; the message is its last line.
    """
    home = place.trained(cell.checkpoint)
    result, log = place.home / "runs" / cell.name, place.home / "runs" / f"{cell.name}.log"
    asked = replace(arm, rows={**arm.rows, **cell.rows})
    shutil.rmtree(result, ignore_errors=True)
    if not run_logged(prune_command(cell.checkpoint, asked, place, home, result), log):
        raise CellError(log.read_text(encoding="utf-8").strip().splitlines()[-1])
    yield result
    shutil.rmtree(result)


def by_prune(metric_of: MetricOf, more: More | None = None) -> Measure:
    """The measurement of cells that are told by this metric, and by what ``more`` finds of the result."""

    def measure(cell: Cell, arm: Arm, place: Place) -> Content:
        with pruned(cell, arm, place) as result:
            report = json.loads((result / "report.json").read_text(encoding="utf-8"))
            digest = read_plan_file(result).source.sha256
            found = {} if more is None else more(result, cell, place)
        metric = metric_of(cell.checkpoint, report["base"]["test"])
        return {"metric": metric, "checkpoint": digest, **found, "report": report}

    return measure


def prune_command(checkpoint: Checkpoint, arm: Arm, place: Place, home: Path, result: Path) -> list[str]:
    """The arguments of this Python that make the run of a cell.

    Args:
        checkpoint: what is pruned. Inputs are cut where they were in training, and inspected in the order of the task.
        arm: what is asked.
        place: of the prepared sets, and of the parts of them that are drawn.
        home: directory of the checkpoint.
        result: where the result goes.
    """
    knobs: dict[str, Any] = {"seed": checkpoint.seed, "max_length": checkpoint.max_length}
    has_order = arm.knobs.get("method", "axformer") == "axformer" and arm.preset in _ORDERED
    if checkpoint.task_name is not None and has_order:
        knobs["order"] = checkpoint.task_name
    return [
        *[*PRUNE, str(home)],
        *(
            f"--{_OPTIONS.get(part, part)}={rows_of(checkpoint, part, arm, place)}"
            for part in (*arm.usual_parts, *arm.parts)
        ),
        *(f"--output={result}", f"--preset={arm.preset}", f"--forms={','.join(arm.forms)}", f"--device={place.device}"),
        *(f"--set={name}={json.dumps(value)}" for name, value in (knobs | dict(arm.knobs)).items()),
        *(f"--finetune={name}={json.dumps(value)}" for name, value in arm.finetune.items()),
    ]


def rows_of(checkpoint: Checkpoint, part: str, arm: Arm, place: Place) -> Path:
    """The file of a part; where it is to have fewer rows, one that is drawn from it with a fixed seed."""
    whole = checkpoint.rows(place.sets, _PART_OF_SET.get(part, part))
    if part not in arm.rows:
        return whole
    file = place.home / "drawn" / checkpoint.data / f"{part}-{arm.rows[part]}.jsonl"
    if not file.is_file():
        with whole.open(encoding="utf-8") as lines:
            chosen = sample(list(lines), arm.rows[part], _label if part == "validation" else alike)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(chosen), encoding="utf-8")
    return file


def _label(line: str) -> Any:
    return json.loads(line).get("label")

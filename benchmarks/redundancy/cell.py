"""Measure one cell: run ``axformer analyze`` as a person would, in a process of its own, whose time and memory it tells."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from benchmarks.commands import run_logged
from benchmarks.finetune import BASES
from benchmarks.kept import prepare_set
from benchmarks.redundancy.grid import Cell
from benchmarks.rows import read_rows
from benchmarks.running import Place
from benchmarks.tasks.registry import task_named

_WITHOUT_HEAD = ("layers", "cka", "clusters", "features")
"""The reports that do not ask what the head answers."""


def write_pretrained(cell: Cell, sets: Path, output: Path) -> None:
    """Write the packaged model with an untrained head for the set's labels, which an analysis needs to read them."""
    base, task = BASES[cell.checkpoint.family].home(), task_named(cell.checkpoint.task)
    rows = read_rows(cell.checkpoint.rows(sets, "train"), task.form)
    partial = output.with_name(f"{output.name}.partial")
    task.auto_class.from_pretrained(base, **task.head(rows)).save_pretrained(partial)
    AutoTokenizer.from_pretrained(base).save_pretrained(partial)
    partial.rename(output)


def measure_cell(cell: Cell, place: Place) -> Mapping[str, Any]:
    """Prepare a cell's set and its model, each if it was not done before, and analyze it.

    Raises:
        CannotTrainError: its checkpoint cannot be trained.
        RuntimeError: the analysis failed; its log says why.
    """
    log = place.home / "redundancy" / f"{cell.name}.log"
    if not cell.is_pretrained:
        return measure(cell, place.trained(cell.checkpoint), place.sets, log)
    prepare_set(cell.checkpoint.data, place.source, place.sets)
    directory = place.home / "pretrained" / f"{cell.checkpoint.data}-{cell.checkpoint.family}"
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        write_pretrained(cell, place.sets, directory)
    return measure(cell, directory, place.sets, log)


def measure(cell: Cell, checkpoint: Path, sets: Path, log: Path) -> Mapping[str, Any]:
    """The analysis of a cell with what the cell is.

    Raises:
        RuntimeError: the analysis failed; its log says why.
    """
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "analysis"
        data, train = (cell.checkpoint.rows(sets, part) for part in ("validation", "train"))
        command = [
            *["-c", "from axformer.cli.main import app; app()", "analyze", str(checkpoint)],
            f"--data={data}",
            f"--train={train}",
            f"--output={output}",
            f"--max-length={cell.checkpoint.max_length}",
            *([f"--report={','.join(_WITHOUT_HEAD)}"] if cell.is_pretrained else []),
        ]
        if not run_logged(command, log):
            raise RuntimeError(f"the analysis of {cell.name} failed; see {log}")
        text = (output / "analysis.json").read_text(encoding="utf-8")
    for path, name in ((checkpoint, "checkpoint"), (data, data.name), (train, train.name)):
        text = text.replace(str(path), name)  # where the inputs lie on this machine matters to nobody else
    about = {"cell": cell.name, "model": cell.checkpoint.family, "data": cell.checkpoint.data}
    return about | {"is_pretrained": cell.is_pretrained, "analysis": json.loads(text)}

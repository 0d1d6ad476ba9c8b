"""Measure a checkpoint on a data file with transformers alone, and keep the figures.

python -m benchmarks.figures CHECKPOINT --task tagging --data test.jsonl --output figures.json
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks.measure import measure
from benchmarks.rows import read_rows
from benchmarks.tasks.base import Task
from benchmarks.tasks.registry import task_named
from benchmarks.training import Recipe


def figures_of(checkpoint: Path, task: Task[Any], data: Path, max_length: int) -> dict[str, float]:
    """The task's metrics of a checkpoint on a JSON Lines file."""
    return measure(checkpoint, task, read_rows(data, task.form), max_length)


def as_text(figures: Mapping[str, float]) -> str:
    """Figures in one line."""
    return ", ".join(f"{name} {value:.4f}" for name, value in figures.items())


def main(
    checkpoint: Annotated[Path, typer.Argument(help="directory of a checkpoint")],
    task: Annotated[str, typer.Option(help="what it does; a wrong name lists the tasks")],
    data: Annotated[Path, typer.Option(help="JSON Lines to measure on")],
    output: Annotated[Path, typer.Option(help="JSON file for the figures")],
    max_length: int = Recipe.max_length,
    threads: int = Recipe.threads,
) -> None:
    """Measure a checkpoint."""
    torch.set_num_threads(threads)
    found = figures_of(checkpoint, task_named(task), data, max_length)
    print(as_text(found))
    output.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)

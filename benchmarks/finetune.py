"""Fine-tune a packaged model, MiniLM or MPNet-base, for a task.

    python -m benchmarks.finetune --task classification --train train.jsonl --output DIR [--dev dev.jsonl]

The result is an ordinary checkpoint directory: what a team that uses AxFormer already has. ``benchmarks/tasks`` holds the
tasks and says which rows each learns from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from transformers import AutoTokenizer

from benchmarks.figures import as_text, figures_of
from benchmarks.packages import minilm, mpnet_base
from benchmarks.rows import read_rows
from benchmarks.tasks.base import Task
from benchmarks.tasks.registry import task_named
from benchmarks.training import Recipe, fit

BASE = "minilm"
"""What the small packaged model is called beside the families."""


@dataclass(frozen=True)
class Base:
    """A packaged model to begin with."""

    home: Callable[[], Path]
    learning_rate: float


BASES: Mapping[str, Base] = {
    BASE: Base(minilm, Recipe.learning_rate),
    "mpnet-base": Base(mpnet_base, 3e-5),  # of the 2e-5 to 5e-5 usual at this scale
}
"""By the names that stand beside the families."""


def finetune(base: Path, task: Task[Any], rows: Sequence[Any], output: Path, recipe: Recipe) -> None:
    """Train on ``rows`` from the checkpoint ``base`` and write the new checkpoint to ``output``."""
    torch.set_num_threads(recipe.threads)
    torch.manual_seed(recipe.seed)
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = task.auto_class.from_pretrained(base, **task.head(rows))
    fit(model, tokenizer, task, rows, recipe)
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)


def main(
    train: Annotated[Path, typer.Option(help="JSON Lines to train on")],
    output: Annotated[Path, typer.Option(help="directory of the new checkpoint")],
    task: Annotated[str, typer.Option(help="what to learn; a wrong name lists the tasks")] = "classification",
    dev: Annotated[Path | None, typer.Option(help="JSON Lines to measure the new checkpoint on")] = None,
    base: Annotated[str, typer.Option(help=f"what to begin with: {' or '.join(BASES)}")] = BASE,
    epochs: int = Recipe.epochs,
    seed: int = Recipe.seed,
    max_length: int = Recipe.max_length,
    batch_size: int = Recipe.batch_size,
    learning_rate: Annotated[
        float | None, typer.Option(help="that of the model to begin with where none is given")
    ] = None,
    threads: int = Recipe.threads,
    bfloat16: bool = Recipe.bfloat16,
) -> None:
    """Fine-tune a packaged model."""
    if base not in BASES:
        raise typer.BadParameter(f"base '{base}' is unknown; there are {', '.join(BASES)}")
    rate = BASES[base].learning_rate if learning_rate is None else learning_rate
    recipe = Recipe(epochs, seed, max_length, batch_size, rate, threads=threads, bfloat16=bfloat16)
    kind = task_named(task)
    finetune(BASES[base].home(), kind, read_rows(train, kind.form), output, recipe)
    if dev is not None:
        print(as_text(figures_of(output, kind, dev, max_length)))


if __name__ == "__main__":
    typer.run(main)

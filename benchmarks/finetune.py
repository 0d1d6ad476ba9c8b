"""Fine-tune the packaged MiniLM for a task.

    python -m benchmarks.finetune --task classification --train train.jsonl --output DIR [--dev dev.jsonl]

The result is an ordinary checkpoint directory: what a team that uses AxFormer already has. ``benchmarks/tasks`` holds the
tasks and says which rows each learns from.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from transformers import AutoTokenizer

from benchmarks.figures import as_text, figures_of
from benchmarks.packages import minilm
from benchmarks.rows import read_rows
from benchmarks.tasks.base import Task
from benchmarks.tasks.registry import task_named
from benchmarks.training import Recipe, fit

BASE = "minilm"
"""What the packaged model is called beside the families."""


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
    epochs: int = Recipe.epochs,
    seed: int = Recipe.seed,
    max_length: int = Recipe.max_length,
    batch_size: int = Recipe.batch_size,
    learning_rate: float = Recipe.learning_rate,
    threads: int = Recipe.threads,
    bfloat16: bool = Recipe.bfloat16,
) -> None:
    """Fine-tune the packaged MiniLM."""
    recipe = Recipe(epochs, seed, max_length, batch_size, learning_rate, threads=threads, bfloat16=bfloat16)
    kind = task_named(task)
    finetune(minilm(), kind, read_rows(train, kind.form), output, recipe)
    if dev is not None:
        print(as_text(figures_of(output, kind, dev, max_length)))


if __name__ == "__main__":
    typer.run(main)

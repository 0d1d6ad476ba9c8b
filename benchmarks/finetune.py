"""Fine-tune a packaged model, MiniLM or MPNet-base, for a task.

The result is an ordinary checkpoint directory: what a team that uses AxFormer already has. ``benchmarks/tasks`` holds the
tasks and says which rows each learns from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from benchmarks.packages import minilm, mpnet_base
from benchmarks.tasks.registry import Task
from benchmarks.training import Recipe, fit

BASE = "minilm"
LARGE_BASE = "mpnet-base"


@dataclass(frozen=True)
class Base:
    """A packaged model to begin with."""

    home: Callable[[], Path]
    learning_rate: float


BASES: Mapping[str, Base] = {
    BASE: Base(minilm, Recipe.learning_rate),
    LARGE_BASE: Base(mpnet_base, 3e-5),  # of the 2e-5 to 5e-5 usual at this scale
}


def finetune(base: Path, task: Task[Any], rows: Sequence[Any], output: Path, recipe: Recipe) -> None:
    """Train on ``rows`` from the checkpoint ``base`` and write the new checkpoint to ``output``."""
    torch.set_num_threads(recipe.threads)
    torch.manual_seed(recipe.seed)
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = task.auto_class.from_pretrained(base, **task.head(rows))
    fit(model, tokenizer, task, rows, recipe)
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)

"""The demo's checkpoint: MiniLM fine-tuned on the movie reviews, made once and kept."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from benchmarks.demo_data import CACHE
from benchmarks.finetune import finetune
from benchmarks.packages import minilm, sha256_of
from benchmarks.rows import Row, read_rows
from benchmarks.tasks.registry import task_named
from benchmarks.training import Recipe

RECIPE = Recipe(epochs=1)


def demo_checkpoint(train: Path, cache: Path = CACHE, recipe: Recipe = RECIPE) -> Path:
    """The directory of the fine-tuned checkpoint; trained anew when the recipe or the data changed."""
    target, note = cache / "checkpoint", cache / "checkpoint.json"
    made_from = json.dumps({"train": sha256_of(train), **asdict(recipe)}, indent=2)
    if target.is_dir() and note.is_file() and note.read_text() == made_from:
        return target
    partial = cache / "checkpoint.partial"
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    finetune(minilm(), task_named("classification"), read_rows(train, Row), partial, recipe)
    partial.rename(target)
    note.write_text(made_from)
    return target

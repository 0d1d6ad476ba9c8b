"""Measure a checkpoint with transformers alone, so that no figure rests on AxFormer's own code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from benchmarks.tasks.base import Task


def measure(checkpoint: Path, task: Task[Any], rows: Sequence[Any], max_length: int) -> dict[str, float]:
    """The task's metrics of a checkpoint, and its mean loss where the task has one."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = task.auto_class.from_pretrained(checkpoint).eval()
    return task.figures(model, tokenizer, rows, max_length)

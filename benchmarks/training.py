"""Train a model on a task: AdamW, a warm-up and a linear decay, batches of rows of like length.

Same seed, threads and machine, same model.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from transformers import get_linear_schedule_with_warmup

from axformer.devices import gain_in_rate
from benchmarks.tasks.registry import Task

# Batches whose rows are sorted together: enough to make lengths alike, few enough to keep the order random.
_BATCHES_PER_BUCKET = 50

RowT = TypeVar("RowT")


@dataclass(frozen=True)
class Recipe:
    """How a model is trained."""

    epochs: int = 3
    """The number the paper fine-tunes for."""
    seed: int = 0
    max_length: int = 128
    """Longest input in tokens; the papers' GLUE setting."""
    batch_size: int = 32
    learning_rate: float = 1e-4
    """A six-layer MiniLM bears, and in three epochs needs, more than the 2e-5 to 5e-5 usual for BERT-base."""
    warmup: float = 0.1
    """Share of the steps in which the learning rate rises."""
    weight_decay: float = 0.01
    gradient_norm: float = 1.0
    """Gradients longer than this are cut to it."""
    threads: int = 2
    bfloat16: bool = False
    """Multiply matrices in bfloat16 (weights stay float32) where the device does so faster than in float32."""
    device: str = "cpu"


def fit(model: Any, tokenizer: Any, task: Task[RowT], rows: Sequence[RowT], recipe: Recipe) -> None:
    """Train all weights of ``model`` and leave it in evaluation mode; prints the loss of each epoch."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )
    steps = recipe.epochs * -(-len(rows) // recipe.batch_size)
    schedule = get_linear_schedule_with_warmup(  # type: ignore[no-untyped-call]
        optimizer, int(recipe.warmup * steps), steps
    )
    shuffle = random.Random(recipe.seed)  # noqa: S311 - an experiment's seed, not a secret
    gain = gain_in_rate(torch.device(recipe.device)) if recipe.bfloat16 else 0.0
    low = gain > 1
    if recipe.bfloat16:
        chosen = "bfloat16" if low else "float32"
        print(f"bfloat16 runs at {gain:.2g} times the rate of float32 here; training in {chosen}", flush=True)
    model.to(recipe.device).train()
    for epoch in range(recipe.epochs):
        start, total = time.monotonic(), 0.0
        for batch in _batches(rows, recipe.batch_size, task.length, shuffle):
            inputs = task.encode(tokenizer, batch, model.config, recipe.max_length)
            with torch.autocast(torch.device(recipe.device).type, torch.bfloat16, enabled=low):
                loss = model(**{name: values.to(recipe.device) for name, values in inputs.items()}).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.gradient_norm)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += loss.item() * len(batch)
        seconds = time.monotonic() - start
        print(
            f"epoch {epoch + 1} of {recipe.epochs}: training loss {total / len(rows):.4f}, {seconds:.0f} s", flush=True
        )
    model.eval()


def _batches(
    rows: Sequence[RowT], size: int, length: Callable[[RowT], int], shuffle: random.Random
) -> Iterator[list[RowT]]:
    order = shuffle.sample(rows, len(rows))
    batches: list[list[RowT]] = []
    for start in range(0, len(order), size * _BATCHES_PER_BUCKET):
        bucket = sorted(order[start : start + size * _BATCHES_PER_BUCKET], key=length)
        batches += [bucket[first : first + size] for first in range(0, len(bucket), size)]
    shuffle.shuffle(batches)
    yield from batches

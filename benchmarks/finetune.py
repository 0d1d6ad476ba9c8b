"""Fine-tune the packaged MiniLM as a sequence classifier, or as a regressor where the labels are floats.

    python -m benchmarks.finetune --train train.jsonl --output DIR [--dev dev.jsonl]

The result is an ordinary checkpoint directory: what a team that uses AxFormer already has. The loop is plain: AdamW, a
warm-up and a linear decay, batches of sentences of like length. Same seed, threads and machine, same checkpoint.
"""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup

from benchmarks.measure import measure
from benchmarks.packages import minilm
from benchmarks.rows import Row, read_rows

# Batches whose sentences are sorted together: enough to make lengths alike, few enough to keep the order random.
_BATCHES_PER_BUCKET = 50


@dataclass(frozen=True)
class Recipe:
    """How a model is fine-tuned."""

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


def finetune(base: Path, rows: Sequence[Row], output: Path, recipe: Recipe) -> None:
    """Train on ``rows`` from the checkpoint ``base`` and write the new checkpoint to ``output``."""
    torch.set_num_threads(recipe.threads)
    torch.manual_seed(recipe.seed)
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModelForSequenceClassification.from_pretrained(base, **_head(rows))
    _train(model, tokenizer, rows, recipe)
    model.eval().save_pretrained(output)
    tokenizer.save_pretrained(output)


def _head(rows: Sequence[Row]) -> dict[str, Any]:
    if isinstance(rows[0].label, float):
        return {"num_labels": 1, "problem_type": "regression"}
    names = sorted({str(row.label) for row in rows})
    return {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}


def _train(model: Any, tokenizer: Any, rows: Sequence[Row], recipe: Recipe) -> None:
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )
    steps = recipe.epochs * -(-len(rows) // recipe.batch_size)
    schedule = get_linear_schedule_with_warmup(  # type: ignore[no-untyped-call]
        optimizer, int(recipe.warmup * steps), steps
    )
    shuffle = random.Random(recipe.seed)  # noqa: S311 - an experiment's seed, not a secret
    model.train()
    for epoch in range(recipe.epochs):
        start, total = time.monotonic(), 0.0
        for batch in _batches(rows, recipe.batch_size, shuffle):
            loss = model(**_encode(tokenizer, batch, model.config.label2id, recipe.max_length)).loss
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


def _batches(rows: Sequence[Row], size: int, shuffle: random.Random) -> Iterator[list[Row]]:
    order = shuffle.sample(rows, len(rows))
    batches: list[list[Row]] = []
    for start in range(0, len(order), size * _BATCHES_PER_BUCKET):
        bucket = sorted(order[start : start + size * _BATCHES_PER_BUCKET], key=_length)
        batches += [bucket[first : first + size] for first in range(0, len(bucket), size)]
    shuffle.shuffle(batches)
    yield from batches


def _length(row: Row) -> int:
    return len(row.text) + len(row.text_pair or "")


def _encode(tokenizer: Any, batch: list[Row], label2id: dict[str, int], max_length: int) -> dict[str, torch.Tensor]:
    pairs = [row.text_pair for row in batch] if batch[0].text_pair is not None else None
    inputs = tokenizer(
        [row.text for row in batch], pairs, truncation=True, max_length=max_length, padding=True, return_tensors="pt"
    )
    labels = [row.label if isinstance(row.label, float) else label2id[row.label] for row in batch]
    return {**inputs, "labels": torch.tensor(labels)}


def main(
    train: Annotated[Path, typer.Option(help="JSON Lines to train on")],
    output: Annotated[Path, typer.Option(help="directory of the new checkpoint")],
    dev: Annotated[Path | None, typer.Option(help="JSON Lines to measure the new checkpoint on")] = None,
    epochs: int = Recipe.epochs,
    seed: int = Recipe.seed,
    max_length: int = Recipe.max_length,
    batch_size: int = Recipe.batch_size,
    learning_rate: float = Recipe.learning_rate,
    threads: int = Recipe.threads,
) -> None:
    """Fine-tune the packaged MiniLM."""
    recipe = Recipe(epochs, seed, max_length, batch_size, learning_rate, threads=threads)
    finetune(minilm(), read_rows(train), output, recipe)
    if dev is not None:
        figures = measure(output, read_rows(dev), max_length)
        print(", ".join(f"{name} {value:.4f}" for name, value in figures.items()))


if __name__ == "__main__":
    typer.run(main)

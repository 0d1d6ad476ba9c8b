"""One class a text or pair of texts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from benchmarks.metrics import class_metrics
from benchmarks.rows import Row
from benchmarks.tasks.batches import outputs


class Classification:
    """The class with the largest logit."""

    name = "classification"
    form = Row
    auto_class = AutoModelForSequenceClassification

    def head(self, rows: Sequence[Row]) -> dict[str, Any]:
        return named_labels(str(row.label) for row in rows)

    def length(self, row: Row) -> int:
        return pair_length(row)

    def encode(self, tokenizer: Any, rows: Sequence[Row], config: Any, max_length: int) -> Mapping[str, Tensor]:
        labels = torch.tensor([config.label2id[row.label] for row in rows])
        return {**encode_pairs(tokenizer, rows, max_length), "labels": labels}

    def figures(self, model: Any, tokenizer: Any, rows: Sequence[Row], max_length: int) -> dict[str, float]:
        logits, labels = whole_set(self, model, tokenizer, rows, max_length)
        loss = torch.nn.functional.cross_entropy(logits, labels).item()
        return {"loss": loss, **class_metrics(logits.argmax(-1).numpy(), labels.numpy())}


def named_labels(names: Iterable[str]) -> dict[str, Any]:
    """The two maps between names, sorted, and indices that a configuration holds."""
    ordered = sorted(set(names))
    return {"id2label": dict(enumerate(ordered)), "label2id": {name: index for index, name in enumerate(ordered)}}


def pair_length(row: Row) -> int:
    """Characters of a text and its pair."""
    return len(row.text) + len(row.text_pair or "")


def encode_pairs(tokenizer: Any, rows: Sequence[Row], max_length: int) -> Mapping[str, Tensor]:
    """Texts, or pairs of texts, as the model takes them."""
    pairs = [row.text_pair for row in rows] if rows[0].text_pair is not None else None
    inputs: Mapping[str, Tensor] = tokenizer(
        [row.text for row in rows], pairs, truncation=True, max_length=max_length, padding=True, return_tensors="pt"
    )
    return inputs


def whole_set(task: Any, model: Any, tokenizer: Any, rows: Sequence[Any], max_length: int) -> tuple[Tensor, Tensor]:
    """Logits and labels of all rows, for tasks with one vector of logits a row."""
    parts = list(outputs(model, rows, lambda batch: task.encode(tokenizer, batch, model.config, max_length)))
    return torch.cat([given.logits for given, _ in parts]), torch.cat([inputs["labels"] for _, inputs in parts])

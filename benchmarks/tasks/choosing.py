"""Choose one of several texts that could go with a text."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForMultipleChoice

from benchmarks.metrics import class_metrics
from benchmarks.rows import ChoiceRow
from benchmarks.tasks.classification import whole_set


class Choosing:
    """The choice with the largest logit; all rows of a set have as many choices."""

    name = "multiple-choice"
    form = ChoiceRow
    auto_class = AutoModelForMultipleChoice

    def head(self, rows: Sequence[ChoiceRow]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        return {}

    def length(self, row: ChoiceRow) -> int:
        return max(len(choice) for choice in row.choices) + len(row.text)

    def encode(self, tokenizer: Any, rows: Sequence[ChoiceRow], config: Any, max_length: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        pairs = [(row.text, choice) for row in rows for choice in row.choices]
        texts, choices = zip(*pairs, strict=True)
        inputs = tokenizer(texts, choices, truncation=True, max_length=max_length, padding=True, return_tensors="pt")
        grouped = {name: value.view(len(rows), -1, value.shape[-1]) for name, value in inputs.items()}
        return {**grouped, "labels": torch.tensor([row.label for row in rows])}

    def figures(self, model: Any, tokenizer: Any, rows: Sequence[ChoiceRow], max_length: int) -> dict[str, float]:
        logits, labels = whole_set(self, model, tokenizer, rows, max_length)
        loss = torch.nn.functional.cross_entropy(logits, labels).item()
        return {"loss": loss, "accuracy": class_metrics(logits.argmax(-1).numpy(), labels.numpy())["accuracy"]}

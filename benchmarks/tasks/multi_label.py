"""Any number of classes a text."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from benchmarks.metrics import f1
from benchmarks.rows import LabelsRow
from benchmarks.tasks.classification import named_labels, whole_set


class MultiLabel:
    """Every class whose logit is above 0, which is probability one half."""

    name = "multi-label"
    form = LabelsRow
    auto_class = AutoModelForSequenceClassification

    def head(self, rows: Sequence[LabelsRow]) -> dict[str, Any]:
        names = named_labels(name for row in rows for name in row.labels)
        return {**names, "problem_type": "multi_label_classification"}

    def length(self, row: LabelsRow) -> int:
        return len(row.text)

    def encode(self, tokenizer: Any, rows: Sequence[LabelsRow], config: Any, max_length: int) -> Mapping[str, Tensor]:
        texts = [row.text for row in rows]
        inputs = tokenizer(texts, truncation=True, max_length=max_length, padding=True, return_tensors="pt")
        labels = torch.zeros(len(rows), config.num_labels)
        for place, row in enumerate(rows):
            labels[place, [config.label2id[name] for name in row.labels]] = 1.0
        return {**inputs, "labels": labels}

    def figures(self, model: Any, tokenizer: Any, rows: Sequence[LabelsRow], max_length: int) -> dict[str, float]:
        logits, truth = whole_set(self, model, tokenizer, rows, max_length)
        predicted, expected = logits > 0, truth > 0
        return {
            "loss": torch.nn.functional.binary_cross_entropy_with_logits(logits, truth).item(),
            "f1_micro": f1(int((predicted & expected).sum()), int(predicted.sum()), int(expected.sum())),
            "exact_match": float((predicted == expected).all(-1).double().mean()),
        }

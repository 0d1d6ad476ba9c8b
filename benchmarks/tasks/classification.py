"""Classes or a number for a text or pair of texts, and one of several texts that could go with a text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForMultipleChoice, AutoModelForSequenceClassification

from benchmarks.rows import ChoiceRow, LabelsRow, Row


class Classification:
    """One class: the one with the largest logit."""

    name = "classification"
    form = Row
    auto_class = AutoModelForSequenceClassification

    def head(self, rows: Sequence[Row]) -> dict[str, Any]:
        return named_labels(str(row.label) for row in rows)

    def length(self, row: Row) -> int:
        return len(row.text) + len(row.text_pair or "")

    def encode(self, tokenizer: Any, rows: Sequence[Row], config: Any, max_length: int) -> Mapping[str, Tensor]:
        labels = torch.tensor([config.label2id[row.label] for row in rows])
        return {**_encoded(tokenizer, rows, max_length), "labels": labels}


class Regression(Classification):
    """A number: the only logit."""

    name = "regression"

    def head(self, rows: Sequence[Row]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        return {"num_labels": 1, "problem_type": "regression"}

    def encode(self, tokenizer: Any, rows: Sequence[Row], config: Any, max_length: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        labels = torch.tensor([float(row.label) for row in rows])
        return {**_encoded(tokenizer, rows, max_length), "labels": labels}


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


def named_labels(names: Iterable[str]) -> dict[str, Any]:
    """The two maps between names, sorted, and indices that a configuration holds."""
    ordered = sorted(set(names))
    return {"id2label": dict(enumerate(ordered)), "label2id": {name: index for index, name in enumerate(ordered)}}


def _encoded(tokenizer: Any, rows: Sequence[Row], max_length: int) -> Mapping[str, Tensor]:
    pairs = [row.text_pair for row in rows] if rows[0].text_pair is not None else None
    inputs: Mapping[str, Tensor] = tokenizer(
        [row.text for row in rows], pairs, truncation=True, max_length=max_length, padding=True, return_tensors="pt"
    )
    return inputs

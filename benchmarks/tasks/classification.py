"""Classes, one or several, or a number for a text or pair of texts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from benchmarks.rows import LabelsRow, Row


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
        return {**_of_rows(tokenizer, rows, max_length), "labels": labels}


class Regression(Classification):
    """A number: the only logit."""

    name = "regression"

    def head(self, rows: Sequence[Row]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        return {"num_labels": 1, "problem_type": "regression"}

    def encode(self, tokenizer: Any, rows: Sequence[Row], config: Any, max_length: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        labels = torch.tensor([float(row.label) for row in rows])
        return {**_of_rows(tokenizer, rows, max_length), "labels": labels}


class MultiLabel:
    """Any number of classes: those whose logit is above zero."""

    name = "multi-label"
    form = LabelsRow
    auto_class = AutoModelForSequenceClassification

    def head(self, rows: Sequence[LabelsRow]) -> dict[str, Any]:
        return named_labels(name for row in rows for name in row.labels) | {
            "problem_type": "multi_label_classification"
        }

    def length(self, row: LabelsRow) -> int:
        return len(row.text)

    def encode(self, tokenizer: Any, rows: Sequence[LabelsRow], config: Any, max_length: int) -> Mapping[str, Tensor]:
        has = [[float(name in row.labels) for name in config.label2id] for row in rows]
        return {**_encoded(tokenizer, [row.text for row in rows], None, max_length), "labels": torch.tensor(has)}


def named_labels(names: Iterable[str]) -> dict[str, Any]:
    """The two maps between names, sorted, and indices that a configuration holds."""
    ordered = sorted(set(names))
    return {"id2label": dict(enumerate(ordered)), "label2id": {name: index for index, name in enumerate(ordered)}}


def _of_rows(tokenizer: Any, rows: Sequence[Row], max_length: int) -> Mapping[str, Tensor]:
    pairs = [row.text_pair for row in rows] if rows[0].text_pair is not None else None
    return _encoded(tokenizer, [row.text for row in rows], pairs, max_length)


def _encoded(tokenizer: Any, texts: list[str], pairs: list[Any] | None, max_length: int) -> Mapping[str, Tensor]:
    inputs: Mapping[str, Tensor] = tokenizer(
        texts, pairs, truncation=True, max_length=max_length, padding=True, return_tensors="pt"
    )
    return inputs

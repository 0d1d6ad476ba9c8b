"""Passages to rank: a score for each pair of a query and a passage."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from benchmarks.rows import PassagesRow


class Reranking:
    """One logit a pair, trained by the binary cross-entropy of each."""

    name = "reranking"
    form = PassagesRow
    auto_class = AutoModelForSequenceClassification

    def head(self, rows: Sequence[PassagesRow]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        return {"num_labels": 1, "problem_type": "multi_label_classification"}

    def length(self, row: PassagesRow) -> int:
        return max(map(len, row.passages))

    def encode(self, tokenizer: Any, rows: Sequence[PassagesRow], config: Any, max_length: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        pairs = [(row.query, passage) for row in rows for passage in row.passages]
        right = [float(place == row.label) for row in rows for place in range(len(row.passages))]
        given = tokenizer(pairs, truncation=True, max_length=max_length, padding=True, return_tensors="pt")
        return {**given, "labels": torch.tensor(right).unsqueeze(1)}

"""One number a text or pair of texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from benchmarks.rows import Row
from benchmarks.tasks.classification import encode_pairs, pair_length, whole_set


class Regression:
    """The only logit."""

    name = "regression"
    form = Row
    auto_class = AutoModelForSequenceClassification

    def head(self, rows: Sequence[Row]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        return {"num_labels": 1, "problem_type": "regression"}

    def length(self, row: Row) -> int:
        return pair_length(row)

    def encode(self, tokenizer: Any, rows: Sequence[Row], config: Any, max_length: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        labels = torch.tensor([float(row.label) for row in rows])
        return {**encode_pairs(tokenizer, rows, max_length), "labels": labels}

    def figures(self, model: Any, tokenizer: Any, rows: Sequence[Row], max_length: int) -> dict[str, float]:
        logits, truth = whole_set(self, model, tokenizer, rows, max_length)
        loss = torch.nn.functional.mse_loss(logits[:, 0], truth).item()
        return {"loss": loss, "pearson": float(np.corrcoef(logits[:, 0].numpy(), truth.numpy())[0, 1])}

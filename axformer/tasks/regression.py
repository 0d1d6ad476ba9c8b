"""Regression with one output, such as sentence similarity."""

import math
from typing import Any

import torch
from scipy.stats import pearsonr, spearmanr
from torch import Tensor

from axformer.data import Rows
from axformer.errors import DataError


class Regression:
    """One number a sample; the loss is the squared error."""

    pooled = True
    name = "regression"

    def labels(self, rows: Rows, config: Any) -> Tensor:  # noqa: ARG002 - the protocol's signature
        numbers = [self._number(value, rows, row) for row, value in enumerate(rows.label, 1)]
        if len(set(numbers)) == 1:
            raise DataError(f"data file '{rows.source}' has the same label, {numbers[0]}, in all its {len(rows)} rows")
        return torch.tensor(numbers)

    def _number(self, value: str | int | float, rows: Rows, row: int) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise DataError(
                f"data file '{rows.source}', row {row}: label {value!r} is not a number; the model has one output, "
                "so it is a regression and its labels are numbers"
            )
        return number

    def losses(self, output, batch) -> Tensor:
        logits, labels = output.logits, batch.labels
        return (logits.squeeze(-1) - labels) ** 2

    def metrics(self, logits: Tensor, labels: Tensor) -> dict[str, float]:
        predicted, expected = logits.squeeze(-1).numpy(), labels.numpy()
        if float(predicted.std()) == 0.0:
            return {"pearson": 0.0, "spearman": 0.0}  # a constant correlates with nothing
        return {
            "pearson": float(pearsonr(predicted, expected).statistic),
            "spearman": float(spearmanr(predicted, expected).statistic),
        }

"""Regression with one output, such as sentence similarity."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata
from torch import Tensor

from axformer.data.batches import Batch
from axformer.data.encoding import Encoded, one_row_a_sample
from axformer.data.rows import Label, Rows
from axformer.errors import DataError
from axformer.tasks.guess import Guess, guess_of_numbers
from axformer.tasks.standing import Standing
from axformer.tasks.texts import tokenize_texts


class Regression:
    """One number a sample; the loss is the squared error."""

    name = "regression"
    pooled = True
    pipeline = "text-classification"

    def encode(
        self, rows: Rows, tokenizer: Any, config: Any, max_length: int | None, max_tokens: int | None
    ) -> Encoded:
        features, cut = tokenize_texts(rows, tokenizer, max_length, max_tokens)
        return one_row_a_sample(features, self.labels(rows, config), cut)

    def labels(self, rows: Rows, config: Any) -> list[float]:  # noqa: ARG002 - as the other tasks have it
        """The number of each row.

        Raises:
            DataError: a label is not a finite number, or all are the same.
        """
        numbers = [self._number(value, rows, row) for row, value in enumerate(rows.labels("label"), 1)]
        if len(set(numbers)) == 1:
            raise DataError(f"data file '{rows.source}' has the same label, {numbers[0]}, in all its {len(rows)} rows")
        return numbers

    def _number(self, value: Label, rows: Rows, row: int) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise rows.error(
                row,
                f"label {value!r} is not a number; the model has one output, so it is a regression and its labels are "
                "numbers",
            )
        return number

    def losses(self, output: Any, batch: Batch) -> Tensor:
        squared: Tensor = (output.logits.squeeze(-1) - batch.labels) ** 2
        return squared

    def answers(self, output: Any, batch: Batch) -> list[float]:  # noqa: ARG002 - the protocol's signature
        predicted: list[float] = output.logits.squeeze(-1).tolist()
        return predicted

    def statistics(self, answers: Sequence[float], encoded: Encoded) -> np.ndarray:
        """The expected and the predicted number."""
        return np.column_stack([encoded.labels, answers])

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        expected, predicted = statistics.T
        return {
            "pearson": _correlation(expected, predicted),
            "spearman": _correlation(rankdata(expected), rankdata(predicted)),
        }

    def correct(self, statistics: np.ndarray) -> None:
        """A number is near or far, not right or wrong."""

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        return guess_of_numbers(np.array(encoded.labels, dtype=float))

    def standing(self, answers: Sequence[float], encoded: Encoded, config: Any) -> Standing:  # noqa: ARG002
        expected, predicted = np.array(encoded.labels, dtype=float), np.array(answers, dtype=float)
        return Standing(
            f"the scale (labels: {_range(expected)}; the model's answers: {_range(predicted)}), the column of the labels, and "
            "whether the model was fine-tuned for them"
        )


def _range(numbers: np.ndarray) -> str:
    return f"{numbers.min():.4g} to {numbers.max():.4g}, mean {numbers.mean():.4g}"


def _correlation(left: np.ndarray, right: np.ndarray) -> float:
    """Pearson's correlation; a constant correlates with nothing."""
    if np.ptp(left) == 0.0 or np.ptp(right) == 0.0:
        return 0.0
    return float(np.corrcoef(left, right)[0, 1])

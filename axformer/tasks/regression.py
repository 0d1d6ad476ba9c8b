"""Regression with one output, such as sentence similarity, or with several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from axformer.data.batches import Batch
from axformer.data.encoding import Encoded, TokenLimits, one_row_a_sample
from axformer.data.rows import Rows
from axformer.tasks.divergence import OutcomeKind, Predicted, each_row
from axformer.tasks.guess import Guess, guess_of_numbers
from axformer.tasks.numbers import correlations, number_lists_in
from axformer.tasks.standing import LabelAgreement
from axformer.tasks.texts import TextInputs, tokenize_texts


@dataclass(frozen=True)
class Regression(TextInputs):
    """One number per output and sample; the loss is the squared error, averaged over the outputs."""

    notes: tuple[str, ...] = ()
    """Why the labels are read this way, if another reading is possible."""

    name = "regression"
    pooled = True
    pipeline = "text-classification"

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        features, cut = tokenize_texts(rows, tokenizer, limits)
        labels = self.labels(rows, config)
        alike = f"the same label, {_shown(labels[0])}," if all(one == labels[0] for one in labels) else None
        return replace(one_row_a_sample(features, labels, cut), alike=alike, notes=self.notes)

    def labels(self, rows: Rows, config: Any) -> list[list[float]]:
        """The numbers of each row, one per output.

        Raises:
            DataError: a label is not a finite number, or there are not as many as outputs.
        """
        return number_lists_in(rows, config.num_labels)

    def losses(self, output: Any, batch: Batch) -> Tensor:
        squared: Tensor = (output.logits - batch.labels) ** 2
        return squared.mean(dim=-1)

    def predicted(self, output: Any, batch: Batch) -> Predicted:  # noqa: ARG002 - the protocol's signature
        return each_row(output.logits, OutcomeKind.NUMBERS)

    def answers(self, output: Any, batch: Batch) -> list[list[float]]:  # noqa: ARG002 - the protocol's signature
        predicted: list[list[float]] = output.logits.tolist()
        return predicted

    def statistics(self, answers: Sequence[list[float]], encoded: Encoded) -> np.ndarray:
        """The expected numbers, then the predicted ones."""
        return np.hstack([np.array(encoded.labels), np.array(answers)])

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        return correlations(*np.hsplit(statistics, 2))

    def correct(self, statistics: np.ndarray) -> None:
        """None: a number is closer or farther, not right or wrong."""

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        return guess_of_numbers(np.array(encoded.labels, dtype=float))

    def standing(self, answers: Sequence[float], encoded: Encoded, config: Any) -> LabelAgreement:  # noqa: ARG002
        expected, predicted = np.array(encoded.labels, dtype=float), np.array(answers, dtype=float)
        return LabelAgreement(
            f"the scale (labels: {_range(expected)}; the model's answers: {_range(predicted)}), the column of the labels, and "
            "whether the model was fine-tuned for them"
        )


def _range(numbers: np.ndarray) -> str:
    return f"{numbers.min():.4g} to {numbers.max():.4g}, mean {numbers.mean():.4g}"


def _shown(numbers: list[float]) -> str:
    return ", ".join(map(str, numbers))

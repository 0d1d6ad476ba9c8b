"""Binary classification with one output: the layout of cross-encoders, whose logit goes through a sigmoid."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch
from axformer.data.encoding import Encoded
from axformer.data.rows import Rows
from axformer.tasks.class_scores import average_precision, f1
from axformer.tasks.divergence import OutcomeKind, Predicted, each_row
from axformer.tasks.guess import Guess, guess_of_choices
from axformer.tasks.multi_label import DECISION_LOGIT
from axformer.tasks.numbers import encode_numbers, numbers_in
from axformer.tasks.standing import Choices, Standing, agreement_of
from axformer.tasks.texts import TextInputs

_ANSWERS = ("0", "1")


@dataclass(frozen=True)
class BinaryClassification(TextInputs):
    """0 or 1 for each sample; the loss is the binary cross-entropy."""

    notes: tuple[str, ...] = ()
    """Why the labels are read this way."""

    name = "binary_classification"
    pooled = True
    pipeline = "text-classification"

    def encode(
        self,
        rows: Rows,
        tokenizer: Any,
        config: Any,  # noqa: ARG002 - the protocol's signature
        max_length: int | None,
        max_tokens: int | None,
    ) -> Encoded:
        return encode_numbers(rows, tokenizer, self.labels(rows), self.notes, max_length, max_tokens)

    def labels(self, rows: Rows) -> list[float]:
        """0 or 1 for each row.

        Raises:
            DataError: a label is something else.
        """
        numbers = numbers_in(rows)
        for row, number in enumerate(numbers, 1):
            if number not in (0.0, 1.0):
                raise rows.error(row, f"label {number:g} is neither 0 nor 1, as those of the rows that decide are")
        return numbers

    def losses(self, output: Any, batch: Batch) -> Tensor:
        return binary_losses(output, batch)

    def predicted(self, output: Any, batch: Batch) -> Predicted:  # noqa: ARG002 - the protocol's signature
        return each_row(output.logits, OutcomeKind.FLAGS)

    def answers(self, output: Any, batch: Batch) -> list[float]:  # noqa: ARG002 - the protocol's signature
        logits: list[float] = output.logits.squeeze(-1).tolist()
        return logits

    def statistics(self, answers: Sequence[float], encoded: Encoded) -> np.ndarray:
        """The expected answer and the logit."""
        return np.column_stack([encoded.labels, answers])

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        expected, logits = statistics.T
        claimed = logits > DECISION_LOGIT
        return {
            "accuracy": float(self.correct(statistics).mean()),
            "f1": f1(float(expected[claimed].sum()), float(claimed.sum()), float(expected.sum())),
            "average_precision": average_precision(expected, logits),
        }

    def correct(self, statistics: np.ndarray) -> np.ndarray:
        right: np.ndarray = (statistics[:, 1] > DECISION_LOGIT) == (statistics[:, 0] == 1.0)
        return right

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        expected = np.array(encoded.labels, dtype=int)
        return guess_of_choices(expected, np.arange(len(expected)), encoded.samples, _ANSWERS)

    def standing(self, answers: Sequence[float], encoded: Encoded, config: Any) -> Standing:  # noqa: ARG002
        expected, predicted = np.array(encoded.labels, dtype=int), (np.array(answers) > DECISION_LOGIT).astype(int)
        choices = Choices(expected, predicted, np.arange(len(expected)), encoded.samples, len(_ANSWERS))
        causes = (
            "whether 1 means yes in the labels as it does for the model, whether the columns are the right ones, whether text "
            "and text_pair are swapped, and whether the model was fine-tuned for these labels"
        )
        return Standing(causes, (expected == predicted).astype(float), agreement_of(choices))


def binary_losses(output: Any, batch: Batch) -> Tensor:
    """The binary cross-entropy of each row's only logit, against a label between 0 and 1."""
    return functional.binary_cross_entropy_with_logits(output.logits.squeeze(-1), batch.labels, reduction="none")

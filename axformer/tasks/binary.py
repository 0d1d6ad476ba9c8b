"""Binary classification with one output: the layout of cross-encoders, whose logit goes through a sigmoid."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch
from axformer.data.encoding import Encoded, TokenLimits, one_row_a_sample
from axformer.data.rows import Rows
from axformer.tasks.class_scores import average_precision, f1
from axformer.tasks.divergence import OutcomeKind, Predicted, each_row
from axformer.tasks.guess import Guess, guess_of_choices
from axformer.tasks.multi_label import DECISION_LOGIT
from axformer.tasks.numbers import numbers_in
from axformer.tasks.standing import Choices, LabelAgreement, agreement_of
from axformer.tasks.texts import TextInputs, tokenize_texts

_ANSWERS = ("0", "1")


class OneLogit:
    """Of a task whose model rows have one logit and a label between 0 and 1; the loss is the binary cross-entropy."""

    pooled = True
    pipeline = "text-classification"

    def losses(self, output: Any, batch: Batch) -> Tensor:
        return functional.binary_cross_entropy_with_logits(output.logits.squeeze(-1), batch.labels, reduction="none")

    def predicted(self, output: Any, batch: Batch) -> Predicted:  # noqa: ARG002 - the protocol's signature
        return each_row(output.logits, OutcomeKind.FLAGS)

    def answers(self, output: Any, batch: Batch) -> list[float]:  # noqa: ARG002 - the protocol's signature
        logits: list[float] = output.logits.squeeze(-1).tolist()
        return logits


@dataclass(frozen=True)
class SigmoidOutput(OneLogit, TextInputs, ABC):
    """One label for each sample."""

    notes: tuple[str, ...] = ()
    """Why the labels are read this way."""

    @abstractmethod
    def labels(self, rows: Rows) -> list[float]:
        """The label of each row.

        Raises:
            DataError: a label is not one of this task.
        """

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:  # noqa: ARG002
        numbers = self.labels(rows)
        features, cut = tokenize_texts(rows, tokenizer, limits)
        alike = f"only one label, {numbers[0]:g}," if len(set(numbers)) == 1 else None
        return replace(one_row_a_sample(features, numbers, cut), alike=alike, notes=self.notes)


class BinaryClassification(SigmoidOutput):
    """0 or 1 for each sample."""

    name = "binary_classification"

    def labels(self, rows: Rows) -> list[float]:
        numbers = numbers_in(rows)
        for row, number in enumerate(numbers, 1):
            if number not in (0.0, 1.0):
                raise rows.error(row, f"label {number:g} is neither 0 nor 1, as those of the rows that decide are")
        return numbers

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
        return np.asarray((statistics[:, 1] > DECISION_LOGIT) == (statistics[:, 0] == 1.0))

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        expected = np.array(encoded.labels, dtype=int)
        return guess_of_choices(expected, np.arange(len(expected)), encoded.samples, _ANSWERS)

    def standing(self, answers: Sequence[float], encoded: Encoded, config: Any) -> LabelAgreement:  # noqa: ARG002
        expected, predicted = np.array(encoded.labels, dtype=int), (np.array(answers) > DECISION_LOGIT).astype(int)
        choices = Choices(expected, predicted, np.arange(len(expected)), encoded.samples, len(_ANSWERS))
        causes = (
            "whether 1 means yes in the labels as it does for the model, whether the columns are the right ones, whether text "
            "and text_pair are swapped, and whether the model was fine-tuned for these labels"
        )
        return LabelAgreement(causes, (expected == predicted).astype(float), agreement_of(choices))

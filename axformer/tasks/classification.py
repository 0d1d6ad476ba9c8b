"""Single-label classification of texts and text pairs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch
from axformer.data.encoding import Encoded, TokenLimits, one_row_a_sample
from axformer.data.labels import ClassNames, LabelColumn, Read
from axformer.data.rows import Rows
from axformer.tasks.class_scores import class_scores
from axformer.tasks.divergence import OutcomeKind, Predicted, each_row
from axformer.tasks.guess import Guess, guess_of_choices
from axformer.tasks.standing import Choices, LabelAgreement, agreement_of, better_order, order_in_words
from axformer.tasks.texts import TextInputs, tokenize_texts


class OneOfSeveral:
    """One answer of several for each sample; the loss is the cross-entropy."""

    pooled = True

    def losses(self, output: Any, batch: Batch) -> Tensor:
        return functional.cross_entropy(output.logits, batch.labels, reduction="none")

    def predicted(self, output: Any, batch: Batch) -> Predicted:  # noqa: ARG002 - the protocol's signature
        return each_row(output.logits, OutcomeKind.CLASS)

    def answers(self, output: Any, batch: Batch) -> list[int]:  # noqa: ARG002 - the protocol's signature
        predicted: list[int] = output.logits.argmax(dim=-1).tolist()
        return predicted

    def logits(self, output: Any) -> Tensor:
        """The logits of each model row's possible answers, shape (rows, answers)."""
        values: Tensor = output.logits
        return values

    def statistics(self, answers: Sequence[int], encoded: Encoded) -> np.ndarray:
        """The right and the predicted answer."""
        return np.column_stack([encoded.labels, answers])

    def correct(self, statistics: np.ndarray) -> np.ndarray:
        return np.asarray(statistics[:, 0] == statistics[:, 1])


class Classification(OneOfSeveral, TextInputs):
    """One class for each sample."""

    name = "classification"
    pipeline = "text-classification"

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        features, cut = tokenize_texts(rows, tokenizer, limits)
        read = self.labels(rows, config)
        encoded = one_row_a_sample(features, read.indices, cut)
        alike = f"only one class, '{rows.labels('label')[0]}'," if len(set(read.indices)) == 1 else None
        return replace(encoded, labels_as=read.reading, alike=alike, notes=read.notes)

    def labels(self, rows: Rows, config: Any) -> Read:
        """The class of each row.

        Raises:
            DataError: no single reading fits all labels and the model.
        """
        row_of = range(1, len(rows) + 1)
        column = LabelColumn(rows.labels("label"), rows, row_of, own_names=rows.names_of("label"))
        return column.read(ClassNames.of(config))

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        expected, predicted = statistics.astype(int).T
        return class_scores(expected, predicted)

    def guess(self, encoded: Encoded, config: Any) -> Guess:
        expected = np.array(encoded.labels)
        return guess_of_choices(expected, np.arange(len(expected)), encoded.samples, ClassNames.of(config).names)

    def standing(self, answers: Sequence[int], encoded: Encoded, config: Any) -> LabelAgreement:
        names, expected, predicted = ClassNames.of(config).names, np.array(encoded.labels), np.array(answers)
        choices = Choices(expected, predicted, np.arange(len(expected)), encoded.samples, len(names))
        causes = (
            f"whether the labels count the classes as the model does ({order_in_words(names)}), whether the columns are the "
            "right ones, whether text and text_pair are swapped, and whether the model was fine-tuned for these labels"
        )
        right = (expected == predicted).astype(float)
        return LabelAgreement(causes, right, agreement_of(choices), better_order(choices, encoded.inputs), names)

"""Multi-label classification of texts and text pairs: each class applies or not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch
from axformer.data.encoding import Encoded, TokenLimits, one_row_a_sample
from axformer.data.labels import ClassNames
from axformer.data.rows import Rows
from axformer.tasks.class_scores import f1, f1_macro
from axformer.tasks.divergence import OutcomeKind, Predicted, each_row
from axformer.tasks.guess import Guess, guess_of_flags
from axformer.tasks.label_sets import read_label_sets
from axformer.tasks.standing import Flags, LabelAgreement, agreement_of, better_order, order_in_words
from axformer.tasks.texts import TextInputs, tokenize_texts

DECISION_LOGIT = 0.0
"""A class is predicted above this logit, a probability of one half."""


class MultiLabelClassification(TextInputs):
    """Any number of classes for each sample; the loss is the binary cross-entropy, averaged over the classes."""

    name = "multi_label_classification"
    pooled = True
    pipeline = "text-classification"

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        features, cut = tokenize_texts(rows, tokenizer, limits)
        sets = read_label_sets(rows, ClassNames.of(config))
        encoded = one_row_a_sample(features, sets.flags, cut)
        alike = "the same labels" if all(flags == sets.flags[0] for flags in sets.flags) else None
        return replace(encoded, labels_as=sets.reading, alike=alike, notes=sets.notes)

    def losses(self, output: Any, batch: Batch) -> Tensor:
        losses = functional.binary_cross_entropy_with_logits(output.logits, batch.labels, reduction="none")
        return losses.mean(dim=-1)

    def predicted(self, output: Any, batch: Batch) -> Predicted:  # noqa: ARG002 - the protocol's signature
        return each_row(output.logits, OutcomeKind.FLAGS)

    def answers(self, output: Any, batch: Batch) -> list[list[bool]]:  # noqa: ARG002 - the protocol's signature
        predicted: list[list[bool]] = (output.logits > DECISION_LOGIT).tolist()
        return predicted

    def statistics(self, answers: Sequence[list[bool]], encoded: Encoded) -> np.ndarray:
        """The classes that apply, then those that were predicted."""
        return np.hstack([np.array(encoded.labels), np.array(answers, dtype=float)])

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        expected, predicted = np.hsplit(statistics, 2)
        right, claimed, truly = (expected * predicted).sum(0), predicted.sum(0), expected.sum(0)
        return {
            "accuracy": float(self.correct(statistics).mean()),
            "f1_micro": f1(float(right.sum()), float(claimed.sum()), float(truly.sum())),
            "f1_macro": f1_macro(right, claimed, truly),
        }

    def correct(self, statistics: np.ndarray) -> np.ndarray:
        """A sample is right if all its classes are."""
        expected, predicted = np.hsplit(statistics, 2)
        return np.asarray((expected == predicted).all(axis=1))

    def guess(self, encoded: Encoded, config: Any) -> Guess:
        return guess_of_flags(np.array(encoded.labels), ClassNames.of(config).names)

    def standing(self, answers: Sequence[list[bool]], encoded: Encoded, config: Any) -> LabelAgreement:
        names, expected, predicted = (
            ClassNames.of(config).names,
            np.array(encoded.labels),
            np.array(answers, dtype=float),
        )
        flags = Flags(expected, predicted)
        causes = (
            f"whether the labels count the classes as the model does ({order_in_words(names)}), whether the columns "
            "are the right ones, and whether the model was fine-tuned for these labels"
        )
        right = (expected == predicted).all(axis=1).astype(float)
        return LabelAgreement(causes, right, agreement_of(flags), better_order(flags, encoded.inputs), names)

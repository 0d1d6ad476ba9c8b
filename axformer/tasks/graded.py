"""Degrees between 0 and 1 with one output: similarity cross-encoders, also trained with the binary cross-entropy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from axformer.data.encoding import Encoded
from axformer.data.rows import Rows
from axformer.tasks.binary import SigmoidOutput
from axformer.tasks.guess import Guess, guess_of_degrees
from axformer.tasks.numbers import correlations, numbers_in
from axformer.tasks.standing import LabelAgreement


class GradedClassification(SigmoidOutput):
    """A number between 0 and 1 for each sample, predicted as the sigmoid of the logit. The loss is least where they agree."""

    name = "graded_classification"

    def labels(self, rows: Rows) -> list[float]:
        numbers = numbers_in(rows)
        for row, number in enumerate(numbers, 1):
            if not 0.0 <= number <= 1.0:
                raise rows.error(
                    row,
                    f"label {number:g} is not between 0 and 1, where the sigmoid of the model's one output is; divide all "
                    "labels by the largest there can be, or say problem_type=regression in config.json, without a sigmoid, "
                    "if the model tells such numbers as they are",
                )
        return numbers

    def statistics(self, answers: Sequence[float], encoded: Encoded) -> np.ndarray:
        """The expected and the predicted degree."""
        return np.column_stack([encoded.labels, expit(np.array(answers))])

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        return correlations(*np.hsplit(statistics, 2))

    def correct(self, statistics: np.ndarray) -> None:
        """None: a degree is closer or farther, not right or wrong."""

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        return guess_of_degrees(np.array(encoded.labels))

    def standing(self, answers: Sequence[float], encoded: Encoded, config: Any) -> LabelAgreement:  # noqa: ARG002
        return LabelAgreement(
            "whether large labels mean what they do for the model, whether the columns are the right ones, and whether the "
            "model was fine-tuned for them"
        )

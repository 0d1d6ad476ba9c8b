"""Decide whether a model with one output predicts numbers or yes and no.

The same head does both, with losses that pull its logit in different directions: a cross-encoder is trained with the binary
cross-entropy, and the squared error would punish it for being confident. ``config.json`` decides if it can; otherwise the
deciding rows do. The user is told what was chosen, since a wrong guess would prune for the wrong loss.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from axformer.data.encoding import Encoded
from axformer.data.rows import Rows
from axformer.tasks.base import Task
from axformer.tasks.binary import BinaryClassification, SigmoidOutput
from axformer.tasks.guess import Guess, guess_of_degrees
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.numbers import correlations, numbers_in
from axformer.tasks.regression import Regression
from axformer.tasks.standing import LabelAgreement

CROSS_ENCODER_KEYS = ("sentence_transformers", "sbert_ce_default_activation_function")
"""Keys in which sentence-transformers stores the activation of a cross-encoder's output: since version 4, and before."""
_REGRESSION, _MULTI_LABEL = "regression", "multi_label_classification"
_SIGMOID = "Sigmoid"
"""The default activation of sentence-transformers for one output."""
_YES_OR_NO = "read as yes or no (binary cross-entropy)"


def task_of_one_output(config: Any, rows: Rows | None) -> Task:
    """The task of a model with one output.

    Args:
        rows: the deciding rows; without them, only the config decides.

    Raises:
        DataError: the labels are not numbers.
    """
    problem, sigmoid = config.problem_type, has_sigmoid(config)
    if problem == _MULTI_LABEL and (rows is None or rows.has("labels")):
        return MultiLabelClassification()
    is_known = sigmoid or problem not in (None, _REGRESSION)
    if rows is None:
        return BinaryClassification() if is_known else Regression()
    numbers = set(numbers_in(rows))
    if problem == _REGRESSION and not sigmoid:
        return Regression(_told_of_regression(numbers))
    if numbers <= {0.0, 1.0}:
        return BinaryClassification((_told_of_yes_and_no(config, sigmoid=sigmoid),))
    if is_known:
        return GradedClassification((_told_of_degrees(config, sigmoid=sigmoid),))
    return Regression(_told_of_numbers(numbers))


def has_sigmoid(config: Any) -> bool:
    """Whether the config is that of a cross-encoder with a sigmoid output."""
    now, before = (getattr(config, key, None) for key in CROSS_ENCODER_KEYS)
    named = now.get("activation_fn") or _SIGMOID if isinstance(now, dict) else before
    return str(named).rpartition(".")[2] == _SIGMOID


def _told_of_yes_and_no(config: Any, *, sigmoid: bool) -> str:
    if sigmoid or config.problem_type is not None:
        return f"labels are 0 and 1, {_YES_OR_NO}, as the checkpoint says ({_source(config, sigmoid=sigmoid)})"
    return (
        f"labels are 0 and 1 and the model has one output: {_YES_OR_NO}; if it tells numbers, say problem_type=regression in "
        "config.json, for the squared error"
    )


def _told_of_degrees(config: Any, *, sigmoid: bool) -> str:
    return (
        "labels are between 0 and 1, read as degrees that the sigmoid of the model's output tells (binary cross-entropy), as "
        f"config.json says ({_source(config, sigmoid=sigmoid)})"
    )


def _source(config: Any, *, sigmoid: bool) -> str:
    return "the Sigmoid of a cross-encoder" if sigmoid else f"problem_type={config.problem_type}"


def _told_of_regression(numbers: set[float]) -> tuple[str, ...]:
    if not numbers <= {0.0, 1.0}:
        return ()
    return (
        "labels are 0 and 1, read as numbers (squared error), as config.json says (problem_type=regression); transformers "
        "writes that by itself, so if the model says yes or no, take problem_type out, for the binary cross-entropy",
    )


def _told_of_numbers(numbers: set[float]) -> tuple[str, ...]:
    if not all(0.0 <= number <= 1.0 for number in numbers):
        return ()
    key = CROSS_ENCODER_KEYS[0]
    return (
        "labels are between 0 and 1, read as numbers (squared error); if the model tells them by the sigmoid of its output, as "
        f'cross-encoders do, say "{key}": {{"activation_fn": "torch.nn.modules.activation.Sigmoid"}} in config.json, for the '
        "binary cross-entropy",
    )


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

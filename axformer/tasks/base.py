"""The interface of a task: how to read its data, the loss of a sample, and its metrics.

Outputs are those of transformers' models. Nothing as large as a model's output outlives its batch: ``answers`` keeps what the
metrics need, ``statistics`` combines the answers of a sample's model rows, and metrics are functions of the statistics alone,
so that a bootstrap can resample.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from axformer.data.batches import Batch
from axformer.data.encoding import Encoded, TokenLimits
from axformer.data.rows import Rows
from axformer.tasks.divergence import Predicted
from axformer.tasks.guess import Guess
from axformer.tasks.standing import LabelAgreement


class Losses(Protocol):
    """The part of a task that trials need."""

    @property
    def pooled(self) -> bool:
        """Whether the head reads one position of a sequence, ``[CLS]`` or the last token, instead of all."""

    def losses(self, output: Any, batch: Batch) -> Tensor:
        """The loss of each model row of a batch, shape (rows,)."""


class Task(Losses, Protocol):
    """One kind of prediction."""

    @property
    def name(self) -> str:
        """The task's name in reports."""

    @property
    def pipeline(self) -> str | None:
        """The transformers pipeline for the task, if there is one."""

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        """Encode the data as token ids and labels.

        Args:

        Raises:
            DataError: a column is missing, or a value or a length does not fit the model.
            CheckpointError: the tokenizer cannot do what the task needs.
        """

    def inputs(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        """The same data without a look at the answers that may stand in it: what calibrates. Arguments and errors as of
        :meth:`encode`."""

    def predicted(self, output: Any, batch: Batch) -> Predicted:
        """The model's predictions, for comparison with another model's."""

    def answers(self, output: Any, batch: Batch) -> list[Any]:
        """The model's answers, one small value per model row, on the CPU."""

    def statistics(self, answers: Sequence[Any], encoded: Encoded) -> np.ndarray:
        """The values that metrics are computed from, shape (samples, columns), given the answers of all model rows in order."""

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        """The task's usual metrics over some samples."""

    def correct(self, statistics: np.ndarray) -> np.ndarray | None:
        """Which samples are answered correctly, shape (samples,), bool; None if there is no right or wrong."""

    def guess(self, encoded: Encoded, config: Any) -> Guess:
        """The figures of guessing, that is of answering without looking at the inputs."""

    def standing(self, answers: Sequence[Any], encoded: Encoded, config: Any) -> LabelAgreement:
        """How well the answers agree with the labels; arguments as for :meth:`statistics` and :meth:`guess`."""

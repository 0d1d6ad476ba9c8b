"""How far one model's predictions are from another's, without any label: what a cut costs as the head sees it.

The divergence of Kullback and Leibler, from the untouched model's distribution to the other's, the mean over a row's
predictions; for numbers half of the squared difference, which is the same of two normal distributions of variance 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch


class Outcome(StrEnum):
    """What a prediction is of."""

    CLASS = "class"
    """One of several; values are logits."""
    FLAGS = "flags"
    """Several that may each be true; values are logits."""
    NUMBERS = "numbers"


@dataclass(frozen=True)
class Predicted:
    """What a model predicts for the rows of a batch."""

    values: Tensor
    """Shape (predictions, outcomes)."""
    row: Tensor
    """Of each prediction the place of its row in the batch, shape (predictions,)."""
    outcome: Outcome


class Predicts(Protocol):
    """What of a task is needed here."""

    @property
    def pooled(self) -> bool:
        """As of :class:`axformer.tasks.base.Losses`."""

    def predicted(self, output: Any, batch: Batch) -> Predicted:
        """What a model's output predicts."""


def each_row(values: Tensor, outcome: Outcome) -> Predicted:
    """One prediction a row; values of shape (rows, outcomes)."""
    return Predicted(values, torch.arange(len(values), device=values.device), outcome)


def where(values: Tensor, mask: Tensor) -> Predicted:
    """A class at each chosen place of a row; values of shape (rows, places, classes), mask of shape (rows, places)."""
    return Predicted(values[mask], mask.nonzero()[:, 0], Outcome.CLASS)


def divergence(teacher: Predicted, student: Predicted, rows: int) -> Tensor:
    """Of each row, shape (rows,)."""
    match teacher.outcome:
        case Outcome.CLASS:
            expected, given = (functional.log_softmax(one.values.float(), dim=-1) for one in (teacher, student))
            each = (expected.exp() * (expected - given)).sum(dim=-1)
        case Outcome.FLAGS:
            wanted = teacher.values.float().sigmoid()
            each = (_flag_losses(student.values, wanted) - _flag_losses(teacher.values, wanted)).mean(dim=-1)
        case Outcome.NUMBERS:
            each = (teacher.values.float() - student.values.float()).square().mean(dim=-1) / 2
    sums = torch.zeros(rows, device=each.device).index_add_(0, teacher.row, each)
    return sums / torch.bincount(teacher.row, minlength=rows).clamp(min=1)


def _flag_losses(logits: Tensor, wanted: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(logits.float(), wanted, reduction="none")


class Divergence:
    """Stands in for a task's losses: an evaluator measures with it how far a plan's predictions are from the teacher's."""

    def __init__(self, task: Predicts, model: Any, batches: Iterable[Batch]) -> None:
        """Run the teacher.

        Args:
            task: of the model.
            model: the teacher.
            batches: all that will be measured.
        """
        self._task = task
        self._teacher: dict[int, Predicted] = {}
        with torch.inference_mode():
            for batch in batches:
                self._teacher[int(batch.rows[0])] = task.predicted(model(**batch.inputs), batch)

    @property
    def pooled(self) -> bool:
        """As the task's."""
        return self._task.pooled

    def losses(self, output: Any, batch: Batch) -> Tensor:
        """The divergence of each row."""
        teacher = self._teacher[int(batch.rows[0])]
        return divergence(teacher, self._task.predicted(output, batch), len(batch.rows))

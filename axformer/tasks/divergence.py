"""The divergence of one model's predictions from another's, which needs no labels.

It is the Kullback-Leibler divergence from the untouched model's distribution to the other's, averaged over a row's
predictions. For numbers it is half of the squared difference, which is the same for normal distributions of variance 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch


class OutcomeKind(StrEnum):
    """The kind of outcome of a prediction."""

    CLASS = "class"
    """One of several classes; values are logits."""
    FLAGS = "flags"
    """Several flags; values are logits."""
    NUMBERS = "numbers"


@dataclass(frozen=True)
class Predicted:
    """A model's predictions for the rows of a batch."""

    values: Tensor
    """Shape (predictions, outcomes)."""
    row: Tensor
    """The row in the batch of each prediction, shape (predictions,)."""
    outcome: OutcomeKind


class Predicts(Protocol):
    """The part of a task that is needed here."""

    @property
    def pooled(self) -> bool:
        """As of :class:`axformer.tasks.base.Losses`."""

    def predicted(self, output: Any, batch: Batch) -> Predicted:
        """The predictions in a model's output."""


def each_row(values: Tensor, outcome: OutcomeKind) -> Predicted:
    """One prediction per row; values of shape (rows, outcomes)."""
    return Predicted(values, torch.arange(len(values), device=values.device), outcome)


def where(values: Tensor, mask: Tensor) -> Predicted:
    """A class at each masked position; values of shape (rows, positions, classes), mask of shape (rows, positions)."""
    return Predicted(values[mask], mask.nonzero()[:, 0], OutcomeKind.CLASS)


def divergence(teacher: Predicted, student: Predicted, rows: int, temperature: float = 1.0) -> Tensor:
    """The divergence of each row, shape (rows,).

    Args:
        temperature: T divides all logits, and the divergence is multiplied by T^2, so that its gradients keep their size
            (Hinton et al. 2015, section 2.1). For numbers, whose variance would then be T^2, this changes nothing.
    """
    wanted, values = (_divided(one.values.float(), temperature) for one in (teacher, student))
    match teacher.outcome:
        case OutcomeKind.CLASS:
            expected, given = (functional.log_softmax(one, dim=-1) for one in (wanted, values))
            each = (expected.exp() * (expected - given)).sum(dim=-1)
        case OutcomeKind.FLAGS:
            shares = wanted.sigmoid()
            each = (_flag_losses(values, shares) - _flag_losses(wanted, shares)).mean(dim=-1)
        case OutcomeKind.NUMBERS:
            each = (wanted - values).square().mean(dim=-1) / 2
    each = each * temperature**2
    sums = torch.zeros(rows, device=each.device).index_add_(0, teacher.row, each)
    return sums / torch.bincount(teacher.row, minlength=rows).clamp(min=1)


def _divided(values: Tensor, temperature: float) -> Tensor:
    """Values divided by a temperature; the lowest number, which stands at padding, stays one where that makes it infinite."""
    return (values / temperature).clamp(min=torch.finfo(values.dtype).min)


def probe(predicted: Predicted, rows: Tensor) -> Tensor:
    """A number whose gradient g by anything inside the model has the mean of g g^T that is its Fisher information.

    The divergence of a small change is half of its square times the information. Each prediction is multiplied with a random
    direction of its own distribution's covariance; with two classes there is one direction, so only its sign is random.

    Args:
        predicted: with gradients.
        rows: the indices of the batch's rows in the data, shape (rows,); the directions of a row depend on its index alone.
    """
    values = predicted.values.float()
    if predicted.outcome is OutcomeKind.CLASS and values.shape[-1] == 2:
        values = values[:, 1:] - values[:, :1]
        return probe(Predicted(values, predicted.row, OutcomeKind.FLAGS), rows)
    signs = _signs(Predicted(values, predicted.row, predicted.outcome), rows).to(values.device)
    if predicted.outcome is OutcomeKind.CLASS:
        chances = values.detach().softmax(dim=-1)
        drawn = chances.sqrt() * signs
        directions = drawn - chances * drawn.sum(dim=-1, keepdim=True)
    elif predicted.outcome is OutcomeKind.FLAGS:
        chances = values.detach().sigmoid()
        directions = (chances * (1 - chances) / values.shape[-1]).sqrt() * signs
    else:
        directions = signs / values.shape[-1] ** 0.5
    each = torch.bincount(predicted.row, minlength=len(rows)).clamp(min=1)[predicted.row]
    return ((values * directions).sum(dim=-1) / each.sqrt()).sum()


def _signs(predicted: Predicted, rows: Tensor) -> Tensor:
    """A sign for each outcome of each prediction, drawn by the index of its row; shape (predictions, outcomes), on the CPU."""
    signs = torch.empty(predicted.values.shape)
    row = predicted.row.cpu()
    for place, index in enumerate(rows.tolist()):
        mine = row == place
        chance = torch.Generator().manual_seed(index)
        drawn = torch.randint(0, 2, (signs.shape[1], int(mine.sum())), generator=chance)
        signs[mine] = 2.0 * drawn.T - 1
    return signs


def _flag_losses(logits: Tensor, wanted: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")


class Divergence:
    """Replaces a task's losses, so that an evaluator measures how far a plan's predictions diverge from the teacher's."""

    def __init__(self, task: Predicts, model: Any, batches: Iterable[Batch]) -> None:
        """Run the teacher on all batches."""
        self._task = task
        self._teacher: dict[int, Predicted] = {}
        with torch.inference_mode():
            for batch in batches:
                self._teacher[int(batch.rows[0])] = task.predicted(model(**batch.inputs), batch)

    @property
    def pooled(self) -> bool:
        """The task's value."""
        return self._task.pooled

    def losses(self, output: Any, batch: Batch) -> Tensor:
        """The divergence of each row."""
        teacher = self._teacher[int(batch.rows[0])]
        return divergence(teacher, self._task.predicted(output, batch), len(batch.rows))

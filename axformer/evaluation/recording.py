"""Records a model's answers while losses are measured, so that the evaluators of a pass also give metrics."""

from typing import Any

import torch
from torch import Tensor

from axformer.data.batches import Batch, Samples
from axformer.evaluation.plain import Predictions
from axformer.tasks.base import Task


class Recording:
    """Computes a task's losses and records them with the answers. Model rows that an evaluator does not compute again, because
    a plan does not affect them, keep their earlier values."""

    def __init__(self, task: Task, samples: Samples) -> None:
        """
        Args:
            samples: the data set that all batches belong to.
        """
        self._task = task
        rows = len(samples.sample_of_row)
        self._losses = torch.zeros(rows)
        self.answers: list[Any] = [None] * rows
        """The last answer to each model row; see :meth:`axformer.tasks.base.Task.answers`."""
        self.is_on = True
        """Whether anything is recorded; otherwise only the task's losses are computed, without extra cost."""

    @property
    def pooled(self) -> bool:
        """See the task's ``pooled``."""
        return self._task.pooled

    @property
    def predictions(self) -> Predictions:
        """The values recorded so far."""
        return Predictions(self._losses.clone(), list(self.answers))

    def losses(self, output: Any, batch: Batch) -> Tensor:
        """The task's losses."""
        losses = self._task.losses(output, batch)
        if self.is_on:
            self._losses[batch.rows.cpu()] = losses.cpu()
            for row, answer in zip(batch.rows.tolist(), self._task.answers(output, batch), strict=True):
                self.answers[row] = answer
        return losses

"""What a model makes of the rows, kept while losses are measured, so that the evaluators of a pass measure metrics too."""

from typing import Any

import torch
from torch import Tensor

from axformer.data.batches import Batch, Samples
from axformer.evaluation.plain import Predictions
from axformer.tasks.base import Task


class Recording:
    """Tells a task's losses and keeps them with the answers. Model rows that an evaluator does not compute again, since a plan
    changes nothing of them, keep what they have."""

    def __init__(self, task: Task, samples: Samples) -> None:
        """
        Args:
            samples: of which all batches are.
        """
        self._task = task
        rows = len(samples.sample_of_row)
        self._losses = torch.zeros(rows)
        self.answers: list[Any] = [None] * rows
        """The last answer to each model row; see :meth:`axformer.tasks.base.Task.answers`."""
        self.is_on = True
        """Whether anything is kept; else it is the task alone, which costs nothing."""

    @property
    def pooled(self) -> bool:
        """As the task's."""
        return self._task.pooled

    @property
    def predictions(self) -> Predictions:
        """What is kept at this moment."""
        return Predictions(self._losses.clone(), list(self.answers))

    def losses(self, output: Any, batch: Batch) -> Tensor:
        """As the task's."""
        losses = self._task.losses(output, batch)
        if self.is_on:
            self._losses[batch.rows.cpu()] = losses.cpu()
            for row, answer in zip(batch.rows.tolist(), self._task.answers(output, batch), strict=True):
                self.answers[row] = answer
        return losses

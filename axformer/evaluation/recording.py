"""Answers that are kept while losses are measured, so that the evaluators of a pass measure metrics too."""

from typing import Any

from torch import Tensor

from axformer.data.batches import Batch
from axformer.tasks.base import Task


class Recording:
    """Tells a task's losses and keeps the answers. Model rows that an evaluator does not compute again, since a plan changes
    nothing of them, keep the ones they have."""

    def __init__(self, task: Task, rows: int) -> None:
        """
        Args:
            rows: how many model rows the data has.
        """
        self._task = task
        self.answers: list[Any] = [None] * rows
        """The last answer to each model row; see :meth:`axformer.tasks.base.Task.answers`."""

    @property
    def pooled(self) -> bool:
        """As the task's."""
        return self._task.pooled

    def losses(self, output: Any, batch: Batch) -> Tensor:
        """As the task's."""
        for row, answer in zip(batch.rows.tolist(), self._task.answers(output, batch), strict=True):
            self.answers[row] = answer
        return self._task.losses(output, batch)

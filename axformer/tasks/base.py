"""What the library needs to know of a task: how labels are read, what a sample loses, and which metrics count."""

from typing import Any, Protocol

from torch import Tensor

from axformer.data import Rows


class Task(Protocol):
    """One kind of prediction."""

    name: str

    def labels(self, rows: Rows, config: Any) -> Tensor:
        """The labels as the loss takes them, one a row.

        Raises:
            DataError: a label does not fit the model.
        """

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of each sample, shape (samples,)."""

    def metrics(self, logits: Tensor, labels: Tensor) -> dict[str, float]:
        """The task's usual metrics over a whole data set."""

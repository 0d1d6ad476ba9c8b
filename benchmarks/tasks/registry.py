"""What training needs to know of a task, and the tasks by name."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from torch import Tensor

from benchmarks.tasks.answering import Answering
from benchmarks.tasks.classification import Classification, MultiLabel, Regression
from benchmarks.tasks.reranking import Reranking
from benchmarks.tasks.tagging import Tagging

RowT = TypeVar("RowT")


class Task(Protocol[RowT]):
    """One kind of prediction, made with the head that transformers has for it."""

    name: str
    form: type[RowT]
    """The rows it learns from."""
    auto_class: Any
    """The transformers Auto class of its models."""

    def head(self, rows: Sequence[RowT]) -> dict[str, Any]:
        """Settings of the model's configuration that follow from the training rows, such as the names of the labels."""

    def length(self, row: RowT) -> int:
        """About how long a row is, in characters; rows of like length are trained on together."""

    def encode(self, tokenizer: Any, rows: Sequence[RowT], config: Any, max_length: int) -> Mapping[str, Tensor]:
        """What the model takes, with the labels from which it computes its loss."""


_ALL: tuple[Task[Any], ...] = (Classification(), MultiLabel(), Regression(), Tagging(), Answering(), Reranking())
TASKS = {task.name: task for task in _ALL}


def task_named(name: str) -> Task[Any]:
    """The task with this name.

    Raises:
        ValueError: there is none.
    """
    if name not in TASKS:
        raise ValueError(f"task '{name}' is unknown; there are {', '.join(TASKS)}")
    return TASKS[name]

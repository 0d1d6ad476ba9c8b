"""What training needs to know of a task."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from torch import Tensor

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

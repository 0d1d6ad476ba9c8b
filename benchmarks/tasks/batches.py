"""Rows in batches, to measure a model on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

BATCH_SIZE = 64
_LABELS = {"labels", "start_positions", "end_positions"}

RowT = TypeVar("RowT")


def in_batches(rows: Sequence[RowT]) -> Iterator[Sequence[RowT]]:
    """The rows in their order, some at a time."""
    for start in range(0, len(rows), BATCH_SIZE):
        yield rows[start : start + BATCH_SIZE]


@torch.inference_mode()
def outputs(
    model: Any, rows: Sequence[RowT], encode: Callable[[Sequence[RowT]], Mapping[str, Tensor]]
) -> Iterator[tuple[Any, Mapping[str, Tensor]]]:
    """What the model gives for each batch, together with what it was given and the labels."""
    for batch in in_batches(rows):
        inputs = encode(batch)
        yield model(**{name: value for name, value in inputs.items() if name not in _LABELS}), inputs

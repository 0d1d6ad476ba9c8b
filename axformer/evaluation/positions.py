"""The position in each row of a batch that the head of a model reads."""

from typing import Any

from axformer.architectures.base import Architecture
from axformer.data.batches import Batch
from axformer.model.tail import ReadPosition


def read_positions(model: Any, architecture: Architecture, batch: Batch) -> ReadPosition | None:
    """The position of each sequence that a pooling head reads; None if it reads several."""
    head = architecture.head_of(model)
    if head is not None and head.auto_class in architecture.reads_behind_padding:
        return ReadPosition(batch.starts().flatten(), architecture.token_axis)
    tokens = architecture.read_position(model.config, batch.inputs["input_ids"].flatten(end_dim=-2))
    return None if tokens is None else ReadPosition(tokens, architecture.token_axis)

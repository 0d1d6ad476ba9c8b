"""What heads and neurons add to their block's output.

A block's output is ``skip(layer, hidden + added)`` in every family, and what it adds is one matrix product. The share of some
heads or neurons is a slice of it: without them the block adds so much less, and nothing else of it needs to run again
(ALGORITHM, "Exactness").
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import BlockLayout
from axformer.architectures.slices import is_projection


def has_shares(layout: BlockLayout, layer: nn.Module) -> bool:
    """Whether what a block adds can be seen: its projection out is a module."""
    return is_projection(layout.weights(layer).output.module)


def added(layout: BlockLayout, layer: nn.Module, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
    """What a block adds to its input before any norm; of the shape of ``hidden``.

    Args:
        arguments: what the layer is called with, beside its input, by name.
    """
    seen: list[Tensor] = []
    watch = layout.weights(layer).output.module.register_forward_hook(lambda _, __, output: seen.append(output))
    try:
        layout.run(layer, hidden, arguments)
    finally:
        watch.remove()
    return seen[0]

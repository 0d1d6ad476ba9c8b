"""What heads and neurons add to their block's output.

A block's output is ``skip(layer, hidden + added)`` in every family, and what it adds is one matrix product. The share of some
heads or neurons is a slice of it: without them the block adds so much less, and nothing else of it needs to run again
(ALGORITHM, "Exactness").
"""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import BlockLayout
from axformer.architectures.hard_attention import READ_ATTRIBUTE
from axformer.architectures.slices import is_projection
from axformer.model.absorbed import context_at
from axformer.model.tail import ReadPosition


def has_shares(layout: BlockLayout, layer: nn.Module) -> bool:
    """Whether what a block adds can be seen: its output projection is a module."""
    return is_projection(layout.weights(layer).output.module)


def added(
    layout: BlockLayout,
    layer: nn.Module,
    hidden: Tensor,
    arguments: Mapping[str, Any],
    position: ReadPosition | None = None,
    *,
    absorbed: bool = True,
) -> Tensor:
    """What a block adds to its input before any norm; of the shape of ``hidden``.

    Args:
        arguments: what the layer is called with, beside its input, by name.
        position: what attention adds to the token there is wanted alone, of one token then.
        absorbed: compute no keys and values for it, where attention is plain.
    """
    weights = layout.weights(layer)
    if position is not None and absorbed and weights.plain is not None:
        context = context_at(weights.plain, hidden, arguments["attention_mask"], position.tokens)
        alone: Tensor = weights.output.module(context)
        return alone
    seen: list[Tensor] = []
    with ExitStack() as undo:
        if position is not None:
            assert weights.core is not None, "attention blocks name their core"
            setattr(weights.core, READ_ATTRIBUTE, position.tokens)
            undo.callback(delattr, weights.core, READ_ATTRIBUTE)
            one = weights.output.module.register_forward_pre_hook(lambda _, inputs: (inputs[0][:, :1],))
            undo.callback(one.remove)
        watch = weights.output.module.register_forward_hook(lambda _, __, output: seen.append(output))
        undo.callback(watch.remove)
        layout.run(layer, hidden, arguments)
    return seen[0]

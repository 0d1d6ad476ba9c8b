"""Shares: the contributions of heads and neurons to the output of their block.

A block returns ``skip(layer, hidden + added)`` in every family, where ``added`` is one matrix product. The share of some heads
or neurons is a slice of this product. To remove them, their share is subtracted, and nothing else in the block runs again
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
    """Whether the output of a block can be observed, because its output projection is a module."""
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
    """The output that a block adds to its input before any norm; of the shape of ``hidden``.

    Args:
        arguments: the other arguments of the layer's call, by name.
        position: compute the output of attention only for the token at this position; the result then has one token.
        absorbed: for this, compute no keys and values if the attention is plain.
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

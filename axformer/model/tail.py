"""The tail: the blocks after the last remaining attention, which a pooling head needs at one position only.

The tail begins with the last attention block if attention can be computed for one query, otherwise with the block after it.
The input of the tail's first block has the full shape; its output has one token per row.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.plan.blocks import Block, BlockKind, blocks_of_layer
from axformer.plan.plan import Plan


def tail_start(plan: Plan, earliest: int, *, reads_one: bool) -> int:
    """The number of the first block of the tail.

    Args:
        earliest: a layer before which tokens are mixed whatever the plan is; the tail begins there at the earliest.
        reads_one: whether attention can be computed for one query.
    """
    mixing = [layer for layer, left in enumerate(plan.layers) if left.heads]
    own, above = blocks_of_layer(mixing[-1] if mixing else 0)
    return max(Block(earliest, BlockKind.ATTENTION), own if reads_one or not mixing else above).number


def mixes(plan: Plan, block: Block) -> bool:
    """Whether a block mixes tokens: attention with any heads."""
    return not block.is_ffn and bool(block.units(plan))


@dataclass(frozen=True)
class ReadPosition:
    """The position in each row that the head reads."""

    tokens: Tensor
    """Shape (rows,)."""
    axis: int
    """The token axis of three-dimensional activations."""

    def narrow(self, hidden: Tensor) -> Tensor:
        """Select that token: the shape of ``hidden`` with one token."""
        by_row = hidden.movedim(self.axis, 1)
        # len() would become a constant in an exported graph
        rows = torch.arange(self.tokens.shape[0], device=hidden.device)
        return by_row[rows, self.tokens][:, None].movedim(1, self.axis)

    def widen(self, hidden: Tensor, tokens: int) -> Tensor:
        """Repeat that token at all positions."""
        shape = list(hidden.shape)
        shape[self.axis] = tokens
        return hidden.expand(shape)

"""The tail: the blocks after the last remaining attention, which a pooling head needs at one position only.

The tail begins with the last attention block if attention can be computed for one query, otherwise with the block after it.
The input of the tail's first block has the full shape; its output has one token per row.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.plan.plan import Plan


def tail_start(plan: Plan, earliest: int, *, reads_one: bool) -> int:
    """The first block of the tail (see :mod:`axformer.evaluation.changes` for their numbers).

    Args:
        earliest: lower bound, since tokens are mixed before this block whatever the plan is.
        reads_one: whether attention can be computed for one query.
    """
    mixing = [2 * index for index in range(len(plan.layers)) if mixes(plan, 2 * index)]
    return max(earliest, mixing[-1] + (not reads_one) if mixing else 0)


def mixes(plan: Plan, block: int) -> bool:
    """Whether a block mixes tokens: attention with any heads."""
    return block % 2 == 0 and bool(plan.layers[block // 2].heads)


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

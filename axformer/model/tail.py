"""The tail: what stands behind the last attention that is left. A head that reads one position needs it there only.

Where attention can be asked for one position, the last attention block begins the tail, else the block behind it. What goes
into the first block of the tail has the model's own shape, what comes out of it is of one token each.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.plan.plan import Plan


def tail_start(plan: Plan, earliest: int, *, reads_one: bool) -> int:
    """The first block of the tail (see :mod:`axformer.evaluation.changes` for their numbers).

    Args:
        earliest: tokens are mixed before this block, whatever the plan says.
        reads_one: whether attention can be asked for one position.
    """
    mixing = [2 * index for index in range(len(plan.layers)) if mixes(plan, 2 * index)]
    return max(earliest, mixing[-1] + (not reads_one) if mixing else 0)


def mixes(plan: Plan, block: int) -> bool:
    """Whether a block mixes tokens: attention with any heads."""
    return block % 2 == 0 and bool(plan.layers[block // 2].heads)


@dataclass(frozen=True)
class ReadPosition:
    """Which token of each row the head reads."""

    tokens: Tensor
    """Shape (rows,)."""
    axis: int
    """Where tokens are in the shape of activations, of three dimensions."""

    def narrow(self, hidden: Tensor) -> Tensor:
        """That token alone: of the shape of ``hidden``, with one token."""
        by_row = hidden.movedim(self.axis, 1)
        # len() would be a constant in an exported graph
        rows = torch.arange(self.tokens.shape[0], device=hidden.device)
        return by_row[rows, self.tokens][:, None].movedim(1, self.axis)

    def widen(self, hidden: Tensor, tokens: int) -> Tensor:
        """The same token at all positions, where only that one is read."""
        shape = list(hidden.shape)
        shape[self.axis] = tokens
        return hidden.expand(shape)

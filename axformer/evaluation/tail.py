"""The tail: the blocks behind the last attention that is left. A head that reads one position needs them there only.

Before the tail, activations have the model's own shape; in the tail they are of one token each.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.plan import Plan


def tail_start(plan: Plan, earliest: int) -> int:
    """The first block of the tail (see :mod:`axformer.evaluation.changes` for their numbers).

    Args:
        earliest: tokens are mixed before this block, whatever the plan says.
    """
    mixing = [2 * index for index, layer in enumerate(plan.layers) if layer.heads]
    return max(earliest, mixing[-1] + 1 if mixing else 0)


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
        rows = torch.arange(len(self.tokens), device=hidden.device)
        return by_row[rows, self.tokens][:, None].movedim(1, self.axis)

    def widen(self, hidden: Tensor, tokens: int) -> Tensor:
        """The same token at all positions, of which nobody reads another."""
        shape = list(hidden.shape)
        shape[self.axis] = tokens
        return hidden.expand(shape)

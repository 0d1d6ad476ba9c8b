"""The last step of Kwon and others (2022), implemented from the formulas in the paper: one scalar for each kept head and
neuron.

The scalars are fitted block by block from the bottom, so that a block's output approximates the untouched model's at the same
token. Let W_u x_u be the contribution of unit u to the output, and b the bias. The scalars s minimise

    sum over tokens of |y - b - sum_u s_u W_u x_u|^2 + damp^2 |s - 1|^2,

so (A + damp^2) (s - 1) = r - A 1. Here A_uv is the sum over columns i of u and j of v of (W^T W)_ij (sum x x^T)_ij, and r_u the
sum over columns i of u of (W^T (sum (y - b) x^T))_ii. The scalars are folded into the columns. If a block's scalars leave
[-10, 10], the tuning ends there.
"""

from functools import partial

import torch
from torch import Tensor

from axformer.intake.checkpoint import Checkpoint
from axformer.plan.blocks import Block
from axformer.repair.least_squares import Fit, Sums
from axformer.repair.refit import Solver

DAMPING = 1.0
"""The damping of the paper."""
LIMIT = 10.0
"""Largest absolute value of a scalar, as in the paper."""


def best_scalars(weight: Tensor, bias: Tensor | None, sums: Sums, width: int, damping: float = DAMPING) -> Tensor:
    """The scalar of each unit, shape (units,).

    Args:
        weight: the remaining columns, shape (outputs, columns), float64.
        bias: the bias of the output projection, shape (outputs,), float64.
        sums: sums over the inputs, and over the outputs of the untouched model.
        width: number of columns of a unit.
        damping: penalty on the distance from 1.
    """
    x, y = sums.means
    second, cross, _ = sums.covariances
    second = sums.count * (second + torch.outer(x, x))
    cross = sums.count * (cross + torch.outer(y if bias is None else y - bias, x))
    units = weight.shape[1] // width
    products = ((weight.T @ weight) * second).view(units, width, units, width).sum(dim=(1, 3))
    wanted = (weight * cross).sum(dim=0).view(units, width).sum(dim=1)
    damped = products + damping**2 * torch.eye(units, dtype=products.dtype)
    away: Tensor = torch.linalg.solve(damped, wanted - products.sum(dim=1))
    return 1 + away


class Tuning:
    """Tunes the blocks of one plan. Called with a block, it returns the block's solver."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """
        Args:
            checkpoint: the checkpoint of the untouched model.
        """
        self._checkpoint = checkpoint
        self.ended_at: Block | None = None
        """The block whose scalars exceeded the limit; None if there is none."""

    def __call__(self, block: Block) -> Solver:
        return partial(self._solve, block)

    def _solve(self, block: Block, weight: Tensor, fitting: Sums, checking: Sums, *, has_bias: bool) -> Fit:
        architecture, model = self._checkpoint.architecture, self._checkpoint.model
        weights = architecture.layout(block).weights(architecture.layers(model)[block.layer])
        tuned, bias = weight.double(), weights.bias.detach().double() if has_bias and weights.bias is not None else None
        if self.ended_at is None and tuned.shape[1]:
            units = block.size(self._checkpoint.dimensions)
            width = weights.output.parameter.shape[weights.output.axis] // units
            scalars = best_scalars(tuned, bias, fitting + checking, width)
            if float(scalars.abs().max()) > LIMIT:
                self.ended_at = block
            else:
                tuned = tuned * scalars.repeat_interleave(width)
        return Fit(tuned, bias, None)

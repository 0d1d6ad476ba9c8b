"""Allocation: the level of each block that minimises the sum of divergences within a budget, by dynamic programming.

This is a multiple-choice knapsack problem; the solution is exact up to the grid of costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GRID = 2000
"""Number of steps in a budget. Costs are rounded up, so a choice never exceeds the budget."""


@dataclass(frozen=True)
class Choice:
    """One level of one block."""

    cost: float
    error: float


def allocate(blocks: Sequence[Sequence[Choice]], budget: float, grid: int = GRID) -> list[int] | None:
    """Index of each block's level, with the smallest sum of errors within the budget; None if no choice fits.

    Args:
        blocks: the levels of each block, in any order.
        budget: the largest sum of costs, in the unit of the costs.
        grid: number of steps that the budget is divided into.
    """
    if budget <= 0:
        return None
    step = budget / grid
    least = np.zeros(grid + 1)
    picked = []
    for levels in blocks:
        costs = [int(np.ceil(level.cost / step - 1e-9)) for level in levels]
        candidates = np.full((len(levels), grid + 1), np.inf)
        for index, (level, cost) in enumerate(zip(levels, costs, strict=True)):
            if cost <= grid:
                candidates[index, cost:] = least[: grid + 1 - cost] + level.error
        best = candidates.argmin(axis=0)
        least = candidates[best, np.arange(grid + 1)]
        picked.append((best, costs))
    if not np.isfinite(least[grid]):
        return None
    left, chosen = grid, []
    for best, costs in reversed(picked):
        index = int(best[left])
        chosen.append(index)
        left -= costs[index]
    return chosen[::-1]

"""Fixed-sequence testing: test several models in a fixed order, up to the first that fails.

The order is fixed before the confirming rows are seen, so each test may use the whole 5 %; the first failure ends the
sequence (Maurer, Hothorn and Lehmacher, 1995). The order is that of Pareto Testing (Laufer-Goldshtein and others, 2023):
the models on the Pareto front of the deciding rows, the safest first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tested:
    """The models that were tested."""

    indices: tuple[int, ...]
    """In the order of their tests. The last one failed, unless all passed."""
    p_values: tuple[float, ...]
    passed: int
    """How many passed, counted from the first."""

    def cheapest(self, costs: Sequence[float]) -> int | None:
        """Index of the cheapest model that passed, of equal ones the last tested; None if none passed.

        Args:
            costs: the cost of every model by its index.
        """
        return min(reversed(self.indices[: self.passed]), key=lambda index: costs[index], default=None)


def safest_first(falls: Sequence[float], p_values: Sequence[float], costs: Sequence[float]) -> list[int]:
    """Indices of the models on the Pareto front of the deciding rows, by rising p-value there.

    A model dominates another if neither its cost nor its fall is larger and one of them is smaller. Of equal p-values the
    more expensive model comes first, since it is closer to the untouched one.

    Args:
        falls: how far each model's metric fell on the deciding rows.
        p_values: p-values on the same rows, used for the order only.
        costs: the cost of each model, in any unit.
    """
    fell, cost = np.array(falls), np.array(costs)

    def is_dominated(index: int) -> bool:
        no_worse = (fell <= fell[index]) & (cost <= cost[index])
        return bool((no_worse & ((fell < fell[index]) | (cost < cost[index]))).any())

    efficient = [index for index in range(len(fell)) if not is_dominated(index)]
    return sorted(efficient, key=lambda index: (p_values[index], -costs[index]))


def in_sequence(order: Sequence[int], p_value: Callable[[int], float], alpha: float) -> Tested:
    """Test one model after another, up to the first that fails, on rows that did not determine the order.

    Args:
        order: indices of the models.
        p_value: computes a model's p-value from its index; not called after the first failure.
        alpha: the largest p-value that passes.
    """
    p_values: list[float] = []
    for index in order:
        p_values.append(p_value(index))
        if not p_values[-1] <= alpha:
            return Tested(tuple(order[: len(p_values)]), tuple(p_values), len(p_values) - 1)
    return Tested(tuple(order), tuple(p_values), len(p_values))

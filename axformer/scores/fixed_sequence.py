"""Fixed-sequence testing: test several models in a fixed order, up to the first that fails.

The order is fixed before the confirming rows are seen, so each test may use the whole 5 %; the first failure ends the
sequence (Maurer, Hothorn and Lehmacher, 1995).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


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

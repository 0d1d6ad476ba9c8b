"""Testing several models without testing too often: in a fixed sequence, up to the first that fails.

The order is settled before the confirming rows are seen, each test may have the whole
5 %, and the first that fails ends it (Maurer, Hothorn and Lehmacher, 1995). The order is that of Pareto Testing
(Laufer-Goldshtein and others, 2023): of the models that no other outdoes on the deciding rows the safest first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tested:
    """The models that were tested, in their order."""

    places: tuple[int, ...]
    """The last is the one that failed, unless all passed."""
    p_values: tuple[float, ...]
    passed: int
    """How many of them passed, from the first on."""

    def cheapest(self, costs: Sequence[float]) -> int | None:
        """The place of the cheapest that passed, among equals the last tested; None where none passed.

        Args:
            costs: of every model, by its place.
        """
        return min(reversed(self.places[: self.passed]), key=lambda place: costs[place], default=None)


def safest_first(falls: Sequence[float], p_values: Sequence[float], costs: Sequence[float]) -> list[int]:
    """The places of the models that no other outdoes on the deciding rows, by rising p-value there.

    A model outdoes another that costs no less and fell no less, where one of both is more. Of equal p-values the dearer model,
    which is nearer to the untouched one, comes first.

    Args:
        falls: of the metric, on the deciding rows.
        p_values: of the same rows; they only order.
        costs: what each model costs, in any unit.
    """
    fell, cost = np.array(falls), np.array(costs)

    def is_outdone(place: int) -> bool:
        no_worse = (fell <= fell[place]) & (cost <= cost[place])
        return bool((no_worse & ((fell < fell[place]) | (cost < cost[place]))).any())

    efficient = [place for place in range(len(fell)) if not is_outdone(place)]
    return sorted(efficient, key=lambda place: (p_values[place], -costs[place]))


def in_sequence(order: Sequence[int], p_value: Callable[[int], float], alpha: float) -> Tested:
    """Test model after model on rows that did not settle the order, up to the first that fails.

    Args:
        order: places of models.
        p_value: of the model at a place; it is not asked of those behind the first that fails.
        alpha: what a p-value may be at most.
    """
    p_values: list[float] = []
    for place in order:
        p_values.append(p_value(place))
        if not p_values[-1] <= alpha:
            return Tested(tuple(order[: len(p_values)]), tuple(p_values), len(p_values) - 1)
    return Tested(tuple(order), tuple(p_values), len(p_values))

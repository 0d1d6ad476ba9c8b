"""In which order the models of a path are best tested, on how many of the rows, and what point estimates hand out instead.

    python -m benchmarks.certificate_order

prints a table of ``docs/statistics.md`` and one of ``docs/certificate.md``, in some minutes. Data sets are simulated with the
changed answers of a real path: eight budgets of a compression of the demo's MiniLM, calibrated on 2,000 training rows, over
2,503 other rows. An answer that changes in one model has changed in the smaller ones too.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from axformer.reporting.rendering import Table
from axformer.scores.certificate import in_sequence
from axformer.scores.paired_tests import score
from benchmarks.certificate import exact_region

SPEEDS = (1.12, 1.25, 1.43, 1.67, 2.01, 2.51, 3.34, 5.03)
"""Times fewer operations of the models, largest first."""
LOST = (0.0012, 0.0076, 0.0088, 0.0136, 0.0200, 0.0276, 0.0368, 0.0575)
"""Share of answers that each lost."""
GAINED = (0.0008, 0.0024, 0.0052, 0.0120, 0.0136, 0.0212, 0.0244, 0.0316)
ASKED = ((500, 2.0), (1_000, 1.0), (1_000, 2.0), (2_000, 1.0))
"""Rows, and points that may be lost."""
SHARES = (0.4, 0.6, 0.8, 0.9)
"""Of the rows, those that confirm."""
SETS = 2_000
"""Data sets for each line: shares of them are off by a point (one standard deviation)."""
ESTIMATED = 4_000
"""The same for point estimates: shares are off by 0.8."""
_FALL = np.array(LOST) - np.array(GAINED)
Changes = tuple[np.ndarray, np.ndarray]
"""Gained and lost answers of each model, shape (models,)."""


def drawn(chance: np.random.Generator, rows: int) -> Changes:
    """The changed answers of every model on simulated rows."""
    gains, losses = chance.random(rows), chance.random(rows)
    return (gains < np.array(GAINED)[:, None]).sum(axis=1), (losses < np.array(LOST)[:, None]).sum(axis=1)


def safest_first(deciding: Changes, rows: int, margin: float) -> list[int]:
    """The models on the Pareto front of the deciding rows, the safest there first (Laufer-Goldshtein and others, 2023)."""
    gained, lost = deciding
    falls, scores = lost - gained, score(gained, lost, rows, margin)
    # Each model is smaller than the ones before, so a later one that fell no further outdoes it.
    efficient = [place for place in range(len(falls)) if all(falls[place] < fall for fall in falls[place + 1 :])]
    return sorted(efficient, key=lambda place: (-scores[place], place))


@cache
def _region(rows: int, margin: float) -> np.ndarray:
    """How many answers may be lost at most where so many are gained."""
    return exact_region(rows, margin, math.ceil(rows * max(GAINED) + 8 * math.sqrt(rows * max(GAINED)) + 10))


def kept_speed(order: Sequence[int], confirming: Changes, rows: int, margin: float) -> float:
    """The speed of the model that is kept; 1 for the untouched one."""
    gained, lost = confirming
    region = _region(rows, margin)

    def p_value(place: int) -> float:
        return 0.0 if lost[place] <= region[gained[place]] else 1.0

    kept = in_sequence(order, p_value).cheapest([1 / speed for speed in SPEEDS])
    return 1.0 if kept is None else SPEEDS[kept]


def order_table() -> Table:
    """The mean speed of what is kept, and how often nothing is certified, by order and share."""
    table = []
    for rows, points in ASKED:
        for share in SHARES:
            chance, confirm, margin = np.random.default_rng(0), round(share * rows), points / 100
            speeds: dict[str, list[float]] = {"path": [], "deciding": []}
            for _ in range(SETS):
                confirming, deciding = drawn(chance, confirm), drawn(chance, rows - confirm)
                orders = {"path": range(len(SPEEDS)), "deciding": safest_first(deciding, rows - confirm, margin)}
                for name, order in orders.items():
                    speeds[name].append(kept_speed(order, confirming, confirm, margin))
            cells = [
                told
                for found in speeds.values()
                for told in (f"{np.mean(found):.2f}x", f"{100 * np.mean(np.array(found) == 1):.0f} %")
            ]
            table.append([f"{rows:,}", f"{points:g}", f"{share:g}", *cells])
    head = ["rows", "points", "confirm", "path: kept", "path: nothing", "safest first: kept", "safest first: nothing"]
    return Table(head, table)


def estimates_table() -> Table:
    """How often the smallest model whose measured fall is within the limit truly fell further, on so many labelled rows."""
    table = []
    for rows in (200, 400, 1_000):
        cells = []
        for points in (2.0, 1.0, 0.5):
            chance, wrong = np.random.default_rng(0), 0
            for _ in range(ESTIMATED):
                gained = (chance.random(rows) < np.array(GAINED)[:, None]).sum(axis=1)
                lost = (chance.random(rows) < np.array(LOST)[:, None]).sum(axis=1)
                within = np.flatnonzero((lost - gained) / rows <= points / 100)
                wrong += bool(len(within) and _FALL[within[-1]] > points / 100)
            cells.append(f"{100 * wrong / ESTIMATED:.0f} %")
        table.append([f"{rows:,}", *cells])
    return Table(["labelled rows", "2 points", "1 point", "0.5 points"], table)


if __name__ == "__main__":
    print(order_table().markdown())
    print(estimates_table().markdown())

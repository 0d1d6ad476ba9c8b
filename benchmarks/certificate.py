"""Which paired test keeps its level, and which of those certifies most; and what the bootstrap's level is.

    python -m benchmarks.certificate

prints the tables of ``docs/statistics.md``, in some minutes. Tests of right and wrong answers are computed exactly, by going
through everything that may be gained and lost; bets are simulated, and so are metrics that are no means over rows.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from scipy.special import betaincinv
from scipy.stats import binom
from scipy.stats import t as student

from axformer.reporting.rendering import Table
from axformer.scores.confidence import RESAMPLES
from axformer.scores.paired_tests import ALPHA, bca_p_value, betting_p_values, exact_p_value, score

ROWS = (50, 150, 500, 1_500, 5_000)
POINTS = (0.5, 1.0, 2.0, 5.0)
GAINS = (0.0, 0.005, 0.01, 0.02, 0.05)
"""Shares of gained answers at the boundary, where as many and the margin are lost."""
POWERS = (
    *((150, 5.0, 0.02, 0.02), (150, 5.0, 0.0, 0.0), (500, 2.0, 0.01, 0.01), (500, 2.0, 0.005, 0.005)),
    *((500, 5.0, 0.05, 0.05), (1_500, 1.0, 0.01, 0.01), (1_500, 1.0, 0.005, 0.005), (1_500, 2.0, 0.02, 0.015)),
    *((5_000, 0.5, 0.005, 0.005), (5_000, 1.0, 0.02, 0.02), (5_000, 1.0, 0.02, 0.015), (5_000, 2.0, 0.05, 0.05)),
)
"""Rows, points, shares of lost and of gained answers."""
SETS = 4_000
"""Data sets for each simulated share, which is then off by 0.3 points of a hundred (one standard deviation) where it is 5 %."""
BOOTSTRAPPED = 1_000
"""Data sets for each level of the bootstrap: off by 0.7."""
_NORMAL_CRITICAL = 1.6448536269514722


def exact_region(rows: int, margin: float, most_gained: int) -> np.ndarray:
    """How many answers may be lost at most where so many are gained, 0 to most_gained, for the exact test to certify."""
    regions = tango_region(rows, margin, most_gained)
    for gained, lost in enumerate(regions):
        while lost >= 0 and exact_p_value(gained, int(lost), rows, margin) > ALPHA:
            lost -= 1
        while gained + lost < rows and exact_p_value(gained, int(lost) + 1, rows, margin) <= ALPHA:
            lost += 1
        regions[gained] = lost
    return regions


def tango_region(rows: int, margin: float, most_gained: int) -> np.ndarray:
    """The same by Tango's score and the critical value of a normal variable."""
    return _region(rows, most_gained, lambda gained, lost: score(gained, lost, rows, margin) > _NORMAL_CRITICAL)


def clopper_pearson_region(rows: int, margin: float, most_gained: int) -> np.ndarray:
    """The same where the upper end of the share lost less the lower end of the share gained is below the margin."""

    def is_certified(gained: np.ndarray, lost: np.ndarray) -> np.ndarray:
        upper = np.where(lost < rows, betaincinv(lost + 1, np.maximum(rows - lost, 1e-9), 1 - ALPHA / 2), 1.0)
        lower = np.where(gained > 0, betaincinv(np.maximum(gained, 1e-9), rows - gained + 1, ALPHA / 2), 0.0)
        return upper - lower < margin

    return _region(rows, most_gained, is_certified)


def _region(rows: int, most_gained: int, is_certified: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    gained = np.arange(most_gained + 1)
    low, high = np.full(gained.shape, -1), rows - gained
    while (low < high).any():
        middle = (low + high + 1) // 2
        passes = is_certified(gained, middle)
        low, high = np.where(passes, middle, low), np.where(passes, high, middle - 1)
    return low


def chance_of(region: np.ndarray, rows: int, gain: float, harm: float) -> float:
    """The exact chance of a certificate where answers are gained and lost with these chances."""
    gained = np.arange(len(region))
    lost = binom.cdf(region, rows - gained, min(1.0, harm / (1 - gain)))
    return float((binom.pmf(gained, rows, gain) * lost).sum())


def chance_of_bet(rows: int, margin: float, gain: float, harm: float) -> float:
    """The simulated chance of a certificate by the betting test."""
    chance, certified, sets = np.random.default_rng(0), 0, max(1, 2_000_000 // rows)
    for start in range(0, SETS, sets):
        drawn = chance.random((min(sets, SETS - start), rows))
        changes = (drawn < harm).astype(float) - (drawn > 1 - gain)
        certified += int((betting_p_values(changes, margin) <= ALPHA).sum())
    return certified / SETS


TESTS = {"exact": exact_region, "Tango's score": tango_region, "Clopper-Pearson": clopper_pearson_region}


def answers_tables() -> tuple[Table, Table]:
    """False certificates at the boundary, the most over the shares gained, and true ones elsewhere."""
    levels, powers = [], []
    for rows, points in product(ROWS, POINTS):
        margin, most = points / 100, min(rows, math.ceil(rows * 0.05 + 8 * math.sqrt(rows * 0.05) + 10))
        regions = [region(rows, margin, most) for region in TESTS.values()]
        chances = [max(chance_of(one, rows, gain, gain + margin) for gain in GAINS) for one in regions]
        bets = max(chance_of_bet(rows, margin, gain, gain + margin) for gain in GAINS)
        levels.append([f"{rows:,}", f"{points:g}", *map(_percent, (*chances, bets))])
        for harm, gain in [one[2:] for one in POWERS if one[:2] == (rows, points)]:
            chances = [chance_of(one, rows, gain, harm) for one in regions]
            rates = f"{100 * harm:g} %, {100 * gain:g} %"
            found = map(_percent, (*chances, chance_of_bet(rows, margin, gain, harm)))
            powers.append([f"{rows:,}", f"{points:g}", rates, *found])
    names = [*TESTS, "betting"]
    return Table(["rows", "points", *names], levels), Table(["rows", "points", "lost, gained", *names], powers)


def sentences_table() -> Table:
    """Bets and Student's t where a sentence of eight words loses or gains some of them: at the boundary, and without a fall."""
    table, chance = [], np.random.default_rng(1)
    for rows, points, touched in ((150, 2.0, 0.03), (500, 1.0, 0.05), (500, 2.0, 0.1), (1_500, 0.5, 0.03)):
        margin, cells = points / 100, []
        for fall in (margin, 0.0):
            sizes = chance.integers(1, 5, (SETS, rows)) / 8
            harm = (touched + fall / (2.5 / 8)) / 2 if fall else touched / 2
            gain = harm - fall / (2.5 / 8)
            drawn = chance.random((SETS, rows))
            changes = np.where(drawn < harm, sizes, np.where(drawn > 1 - gain, -sizes, 0.0)) if gain >= 0 else None
            if changes is None:  # all that changes is lost
                changes = np.where(drawn < fall / (2.5 / 8), sizes, 0.0)
            deviations = changes.std(axis=1, ddof=1) / math.sqrt(rows)
            ends = changes.mean(axis=1) + student.ppf(1 - ALPHA, rows - 1) * deviations
            cells += [(betting_p_values(changes, margin) <= ALPHA).mean(), (ends < margin).mean()]
        table.append([f"{rows:,}", f"{points:g}", f"{100 * touched:g} %", *map(_percent, cells)])
    head = ["rows", "points", "sentences that change", *("betting, false", "t, false", "betting, true", "t, true")]
    return Table(head, table)


Sets = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Expected answers of rows, and those of two models."""
Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""A metric of expected and predicted answers, along the last axis."""


def _correlated(chance: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pearson's correlation is 0.80, then 0.78; the errors of both models go along with each other."""
    expected, shared = chance.normal(size=(2, rows))
    models = []
    for correlation in (0.80, 0.78):
        error = math.sqrt(0.9) * shared + math.sqrt(0.1) * chance.normal(size=rows)
        models.append(correlation * expected + math.sqrt(1 - correlation**2) * error)
    return expected, models[0], models[1]


def _labelled(chance: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seven of ten rows are of class 1; one model is right on 85 % of each class, the other loses 3 % of all and gains 1 %."""
    expected = chance.random(rows) < 0.7
    before = expected ^ (chance.random(rows) > 0.85)
    drawn, right = chance.random(rows), before == expected
    changed = np.where(right, drawn < 0.03 / 0.85, drawn < 0.01 / 0.15)
    return expected, before, before ^ changed


def _pearson(expected: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    left, right = (one - one.mean(axis=-1, keepdims=True) for one in (expected, predicted))
    return np.asarray((left * right).sum(-1) / np.sqrt((left**2).sum(-1) * (right**2).sum(-1)))


def _f1(expected: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.asarray(2 * (expected & predicted).sum(-1) / (expected.sum(-1) + predicted.sum(-1)))


METRICS: dict[str, tuple[Sets, Measure]] = {
    "Pearson": (_correlated, _pearson),
    "Matthews": (_labelled, _pearson),  # which is Pearson's correlation of flags
    "F1": (_labelled, _f1),
}


def bootstrap_table() -> Table:
    """False certificates of the BCa and of the percentile bootstrap, where the metric fell by just the margin."""
    table = []
    for (name, (draw, measure)), rows in product(METRICS.items(), (100, 300, 1_000)):
        chance, false = np.random.default_rng(2), np.zeros(2)
        whole = draw(chance, 4_000_000)
        margin = float(measure(whole[0], whole[1]) - measure(whole[0], whole[2]))
        blocks = np.array_split(np.arange(rows), min(rows, 200))
        for _ in range(BOOTSTRAPPED):
            fall = partial(_fall, measure, draw(chance, rows))
            drawn = fall(chance.integers(rows, size=(RESAMPLES, rows)))
            left_out = np.array([fall(np.delete(np.arange(rows), block)) for block in blocks])
            p_value = bca_p_value(float(fall(np.arange(rows))), drawn, left_out, margin)
            false += p_value <= ALPHA, (drawn >= margin).mean() <= ALPHA
        table.append([name, f"{rows:,}", f"{100 * margin:.1f}", *map(_percent, false / BOOTSTRAPPED)])
    return Table(["metric", "rows", "points", "BCa", "percentile"], table)


def _fall(measure: Measure, answers: tuple[np.ndarray, ...], places: np.ndarray) -> np.ndarray:
    expected, before, after = (one[places] for one in answers)
    return measure(expected, before) - measure(expected, after)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


if __name__ == "__main__":
    for one in (*answers_tables(), sentences_table(), bootstrap_table()):
        print(one.markdown(), end="\n\n", flush=True)

"""What a number of rows can certify, before any work: the margin that they can carry, and how many rows one needs.

By the exact test of right and wrong answers. Its power is computed by Tango's score with the critical value of a normal
variable, whose region differs from the exact one by single answers (``docs/certificate.md`` has both).
"""

import math
from functools import lru_cache
from statistics import NormalDist

from axformer.scores.confidence import CONFIDENCE
from axformer.scores.paired_tests import ALPHA, chance_of_score, exact_p_value

POWER = 0.8
"""The customary chance that a certificate is given where it is true."""
USUAL_RATE = 0.01
"""Share of answers that a pruned model loses, and as many that it gains, where a pass goes well."""
_CRITICAL = NormalDist().inv_cdf(CONFIDENCE)
_STEP = 0.001
"""Margins are named to a tenth of a point."""
_MOST_ROWS = 10_000_000
"""More nobody labels."""


def power_of(rows: int, margin: float, harm: float, gain: float) -> float:
    """The chance that a model is certified.

    Args:
        rows: that confirm.
        margin: as a share, between 0 and 1.
        harm: share of answers that it loses.
        gain: share of answers that it gains.
    """
    fewest = fewest_rows(margin)
    return 0.0 if fewest is None or rows < fewest else chance_of_score(_CRITICAL, rows, margin, gain, harm)


@lru_cache
def fewest_rows(margin: float) -> int | None:
    """How many rows can certify this margin where no answer changes; None where no number can."""
    if margin <= 0:
        return None
    if margin >= 1:
        return 1
    rows = max(1, math.ceil(math.log(ALPHA) / math.log1p(-margin)))
    while exact_p_value(0, 0, rows, margin) > ALPHA:
        rows += 1
    return rows


def smallest_margin(rows: int, harm: float, gain: float, power: float = POWER) -> float:
    """The smallest margin, in steps of a tenth of a point, that so many rows certify with this chance; at most 1.

    Args:
        rows: that confirm.
        harm: share of answers that the pruned model loses.
        gain: share of answers that it gains.
        power: the chance.
    """
    low, high = 0, round(1 / _STEP)
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(rows, middle * _STEP, harm, gain) >= power:
            high = middle
        else:
            low = middle
    return round(high * _STEP, 3)


def rows_needed(points: float, harm: float, gain: float, power: float = POWER) -> int | None:
    """About how many rows certify so many points with this chance, to one in a hundred; None where no number does.

    Args:
        points: hundredths of the metric.
        harm: share of answers that the pruned model loses.
        gain: share of answers that it gains.
        power: the chance.
    """
    margin = points / 100
    if margin <= harm - gain or margin <= 0:
        return None
    low, high = 0, fewest_rows(margin) or 1
    while power_of(high, margin, harm, gain) < power:
        low, high = high, 2 * high
        if high > _MOST_ROWS:
            return None
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        if power_of(middle, margin, harm, gain) >= power:
            high = middle
        else:
            low = middle
    return high

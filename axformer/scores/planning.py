"""Sample size planning: the margin that a number of rows can certify, and the number of rows that a margin needs.

It plans for the exact test of right and wrong answers. Power is computed from Tango's score with the normal critical value;
its rejection region differs from the exact one by single answers (``docs/statistics.md`` compares them).
"""

import math
from bisect import bisect_left
from functools import lru_cache
from statistics import NormalDist

from axformer.scores.confidence import CONFIDENCE
from axformer.scores.paired_tests import ALPHA, chance_of_score, exact_p_value

POINT = 0.01
"""One point of a metric."""
USUAL_POINTS = 1.0
"""Points that a form may cost to be advised where nothing was asked for that costs."""
USUAL_POINTS_OF_A_WISH = 5.0
"""The same where a size or a speed was asked for."""
POWER = 0.8
"""The usual power: the probability that a model that deserves a certificate gets one."""
USUAL_RATE = 0.01
"""Rate of answers that a pruned model loses in a good pass, and also the rate that it gains."""
_CRITICAL = NormalDist().inv_cdf(CONFIDENCE)
_STEP = 0.001
"""Margins are rounded to a tenth of a point."""
_ROUNDING = 1e-9
_MOST_ROWS = 10_000_000
"""An upper bound on the rows that anyone would label."""


def lost_in_words(points: float, metric: str, rows: int) -> str:
    """What a passed test certifies: ``less than 1 point of accuracy lost, 95 %, on 436 rows``."""
    unit = "point" if points == 1 else "points"
    return f"less than {points:g} {unit} of {metric} lost, {100 * CONFIDENCE:g} %, on {rows:,} rows"


def power_of(rows: int, margin: float, harm: float, gain: float) -> float:
    """The probability that a model is certified.

    Args:
        margin: as a fraction, between 0 and 1.
        harm: rate of answers that the model loses.
        gain: rate of answers that it gains.
    """
    fewest = fewest_rows(margin)
    return 0.0 if fewest is None or rows < fewest else chance_of_score(_CRITICAL, rows, margin, gain, harm)


@lru_cache
def fewest_rows(margin: float) -> int | None:
    """The fewest rows that certify a margin when no answer changes; None if no number does."""
    if margin <= 0:
        return None
    if margin >= 1:
        return 1
    rows = max(1, math.ceil(math.log(ALPHA) / math.log1p(-margin)))
    while exact_p_value(0, 0, rows, margin) > ALPHA:
        rows += 1
    return rows


def most_changed(rows: int, margin: float) -> int:
    """The most changed answers, all of them lost, with which a margin is still certified; -1 if none at all."""
    return bisect_left(range(rows + 1), True, key=lambda lost: exact_p_value(0, lost, rows, margin) > ALPHA) - 1


def smallest_margin(rows: int, harm: float, gain: float) -> float:
    """The smallest margin that a number of rows certifies with the usual power, in steps of a tenth of a point; at most 1.

    Args:
        harm: rate of answers that the pruned model loses.
        gain: rate of answers that it gains.
    """
    steps = range(1, round(1 / _STEP))
    enough = bisect_left(steps, True, key=lambda step: power_of(rows, step * _STEP, harm, gain) >= POWER)
    return round((enough + 1) * _STEP, 3)


def rows_needed(points: float, harm: float, gain: float) -> int | None:
    """The number of rows, to about 1 %, that certifies a margin with the usual power; None if no number does.

    Args:
        points: the margin in hundredths of the metric.
        harm: rate of answers that the pruned model loses.
        gain: rate of answers that it gains.
    """
    margin = points / 100
    if margin <= harm - gain or margin <= 0:
        return None
    low, high = 0, fewest_rows(margin) or 1
    while power_of(high, margin, harm, gain) < POWER:
        low, high = high, 2 * high
        if high > _MOST_ROWS:
            return None
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        if power_of(middle, margin, harm, gain) >= POWER:
            high = middle
        else:
            low = middle
    return high


def free_of_labels_told(rows: int, points: float, *, is_share: bool = True) -> tuple[str, bool]:
    """What rows of which few have labels, or none, certify without any further one, and whether they can certify at all.

    Args:
        rows: confirming rows.
        points: hundredths of the metric.
        is_share: whether the metric is a share of right answers, so that the changed ones bound it.
    """
    fewest, unit = fewest_rows(points * POINT), "point" if points == 1 else "points"
    if fewest is None or rows < fewest:
        least = smallest_margin(rows, 0.0, 0.0) / POINT
        takes = "" if fewest is None else f" (that takes {fewest:,})"
        told = f"{rows:,} rows cannot certify {points:g} {unit} even where no answer changes{takes}; give more rows, or ask for"
        return f"{told} {least:.3g} points", False
    free = most_changed(rows, points * POINT)
    most = "few answers change" if not is_share else f"at most {free} answer{' changes' if free == 1 else 's change'}"
    told = f"a model is certified within {points:g} {unit} without any label while {most}"
    return f"{told}, beyond that by labels of changed answers alone", True


def few_rows_told(rows: int, points: float, share: float = 1.0) -> str | None:
    """A warning if confirming rows are unlikely to certify so many points of a share of right answers; otherwise None.

    Args:
        rows: confirming rows.
        points: hundredths of the metric.
        share: the share of the rows of a file that confirms; what is missing is told in rows of the file.
    """
    margin = points * POINT
    can_carry = smallest_margin(rows, USUAL_RATE, USUAL_RATE)
    if can_carry <= margin + _ROUNDING:
        return None
    start, fewest = f"within_points={points:g}: {rows:,} confirming rows", fewest_rows(margin)
    offered = f", or ask for {can_carry / POINT:.3g} points, which these rows can certify"
    if fewest is None:
        return f"{start} cannot show so small a fall, as no number can, so the untouched model will be kept; allow more points"
    needed = rows_needed(points, USUAL_RATE, USUAL_RATE)
    give = "" if needed is None else f"; give about {math.ceil(needed / share):,} rows in all{offered}"
    if rows < fewest:
        return (
            f"{start} cannot show so small a fall, even where no answer changes (that takes {fewest:,}), so the untouched "
            f"model will be kept{give}"
        )
    usual = f"where {USUAL_RATE:.0%} of the answers are lost and as many gained"
    return f"{start} certify it in less than {POWER:.0%} of cases {usual}{give}"

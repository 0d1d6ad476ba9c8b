"""P-values for "the pruned model is worse than the untouched one by at least a margin", from the same rows before and after.

Of each row the difference is its loss with the pruned model less that with the untouched one, between -1 and 1: of right and
wrong answers -1, 0 or 1. The null hypothesis is that the mean difference is at least the margin; a small p-value speaks
against it. Which test is used for what was decided by simulation (``docs/certificate.md``).
"""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from scipy.special import betainc, betaincinv

from axformer.scores.confidence import CONFIDENCE, RESAMPLES, SEED

ALPHA = 1 - CONFIDENCE
"""A certificate is false in at most this share of data sets."""
_OUTSIDE = 1e-4
"""The chance that the share of gained answers lies outside of the interval that is searched; it is added to the p-value."""
_SHARES = 64
"""How many shares of gained answers are looked at in that interval; four times as many move p-values by 0.0002 at most."""
_TIES = 1e-9
"""What two equal scores may differ by."""
_BLOCKS = 200
"""Most groups of rows that are left out in turn to find how skewed a metric is."""
_NORMAL = NormalDist()


def score(gained: np.ndarray, lost: np.ndarray, rows: int, margin: float) -> np.ndarray:
    """Tango's score (Statistics in Medicine 17, 1998): how far the share of right answers fell short of falling by the margin.

    In standard deviations that it would have if it fell by just the margin. More answers lost and fewer gained lower it.

    Args:
        gained: answers that became right, shape (n,).
        lost: answers that became wrong, shape (n,).
        rows: all of them.
        margin: between 0 and 1.
    """
    spread = margin * (1 - margin)
    # The likeliest share of gains if the fall were the margin is the root of a quadratic equation.
    linear = margin * (2 * rows - lost + gained) - lost - gained
    share_gained = np.maximum(0.0, np.sqrt(linear**2 + 8.0 * rows * gained * spread) - linear) / (4 * rows)
    deviation = np.sqrt(rows * (2 * share_gained + spread))
    room = rows * margin - (lost - gained)
    certain = np.where(room > 0, np.inf, 0.0)
    scores: np.ndarray = np.divide(room, deviation, out=certain, where=deviation > 0)
    return scores


def exact_p_value(gained: int, lost: int, rows: int, margin: float) -> float:
    """The exact unconditional test of right and wrong answers, ordered by Tango's score.

    The p-value is the largest chance of a score at least as high where the share of right answers truly fell by the margin: of
    all shares of gained answers within an interval that leaves out one in ten thousand (Berger and Boos, 1994). It is no
    approximation, at any number of rows.

    Args:
        gained: answers that were wrong before and are right after.
        lost: answers that were right before and are wrong after.
        rows: all of them, at least 1.
        margin: as a share; no fall is above 1.
    """
    margin = min(margin, 1.0)
    observed = float(score(np.array([gained]), np.array([lost]), rows, margin)[0])
    low, high = _shares_gained(gained, rows, (1 - margin) / 2)
    chances = [
        chance_of_score(observed, rows, margin, share, share + margin) for share in np.linspace(low, high, _SHARES + 1)
    ]
    return min(1.0, max(chances) + _OUTSIDE)


def chance_of_score(least: float, rows: int, margin: float, gain: float, harm: float) -> float:
    """The exact chance of a score of at least so much.

    Args:
        least: the score.
        rows: how many there are.
        margin: that the score is about.
        gain: share of answers that become right.
        harm: share of answers that become wrong.
    """
    from scipy.stats import binom  # takes long to import, and only a certificate needs it

    width = 8 * math.sqrt(rows * gain * (1 - gain)) + 12  # of the rest the chance is far below 1e-9
    gained = np.arange(max(0, math.floor(rows * gain - width)), min(rows, math.ceil(rows * gain + width)) + 1)
    most = _most_lost(gained, rows, margin, least)
    share_lost = 1.0 if gain >= 1 else min(1.0, harm / (1 - gain))
    return float((binom.pmf(gained, rows, gain) * _at_most(most, rows - gained, share_lost)).sum())


def betting_p_value(differences: np.ndarray, margin: float) -> float:
    """The p-value of a bet against the null hypothesis (Waudby-Smith and Ramdas, 2024), for differences of any size.

    Someone bets on each row in turn, by what the rows before spread like, and would not win on average if the pruned model
    were worse by the margin; that the fortune ever grows by 20 has a chance of 5 % at most, at any number of rows. The rows
    are taken in a random order, by a fixed seed.

    Args:
        differences: between -1 and 1, shape (rows,).
        margin: as a share.
    """
    order = np.random.default_rng(SEED).permutation(len(differences))
    return float(betting_p_values(differences[None, order], margin)[0])


def betting_p_values(differences: np.ndarray, margin: float) -> np.ndarray:
    """The same of many data sets at once, in the order of their columns.

    Args:
        differences: shape (sets, rows).
        margin: as a share.

    Returns:
        Shape (sets,).
    """
    rows = differences.shape[1]
    gains, bar = (1 - differences) / 2, (1 - margin) / 2
    if bar <= 0:
        return np.zeros(len(gains))
    seen = np.arange(1, rows + 1)
    means = (0.5 + gains.cumsum(axis=1)) / (seen + 1)
    variances = (0.25 + ((gains - means) ** 2).cumsum(axis=1)) / (seen + 1)
    before = np.column_stack([np.full(len(gains), 0.25), variances[:, :-1]])
    bets = np.minimum(np.sqrt(2 * math.log(1 / ALPHA) / (rows * before)), 0.9 / bar)
    fortune = np.log1p(bets * (gains - bar)).cumsum(axis=1).max(axis=1)
    p_values: np.ndarray = np.minimum(1.0, np.exp(-fortune))
    return p_values


def bootstrap_test(
    untouched: np.ndarray, measure: Callable[[np.ndarray], float], margin: float
) -> Callable[[np.ndarray], float]:
    """The p-value of a pruned model by the BCa bootstrap (Efron, 1987), for metrics that are no means over rows.

    It is *asymptotic*: near its level on many rows, above it on few. The p-value is the level at which the one-sided interval
    of the metric's fall just reaches the margin.

    Args:
        untouched: a row a sample, shape (samples, columns).
        measure: the metric of such a table, larger is better.
        margin: of the metric.

    Returns:
        What gives the p-value of another model's table, of the same samples.
    """
    rows, chance = len(untouched), np.random.default_rng(SEED)
    draws = [chance.integers(rows, size=rows) for _ in range(RESAMPLES)]
    blocks = np.array_split(np.arange(rows), min(rows, _BLOCKS)) if rows > 1 else []
    rests = [np.delete(np.arange(rows), block) for block in blocks]

    def measured(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        whole, drawn, left_out = ([measure(table[one]) for one in sets] for sets in ([np.arange(rows)], draws, rests))
        return np.array(whole), np.array(drawn), np.array(left_out)

    before = measured(untouched)

    def p_value(table: np.ndarray) -> float:
        fall, drawn, left_out = (one - other for one, other in zip(before, measured(table), strict=True))
        return bca_p_value(float(fall[0]), drawn, left_out, margin)

    return p_value


def bca_p_value(fall: float, drawn: np.ndarray, left_out: np.ndarray, margin: float) -> float:
    """The level at which the BCa upper end of a fall is the margin, from falls of drawn samples and with parts left out."""
    away = left_out.mean() - left_out if len(left_out) else np.zeros(1)
    spread = float((away**2).sum()) ** 1.5
    skewness = float((away**3).sum()) / (6 * spread) if spread > 0 else 0.0
    bias = _NORMAL.inv_cdf(_share_below(drawn, fall))
    place = _NORMAL.inv_cdf(_share_below(drawn, margin)) - bias
    stretch = 1 + skewness * place
    return _NORMAL.cdf(bias - place / stretch) if stretch > 0 else float(place < 0)


def _share_below(drawn: np.ndarray, value: float) -> float:
    """Of drawn figures, ties counted half; never 0 or 1, which so many draws cannot tell."""
    share = float(((drawn < value).sum() + 0.5 * (drawn == value).sum()) / len(drawn))
    return min(max(share, 0.5 / len(drawn)), 1 - 0.5 / len(drawn))


def _shares_gained(gained: int, rows: int, most: float) -> tuple[float, float]:
    """The Clopper-Pearson interval of the share of gained answers, which is at most so much."""
    low = 0.0 if gained == 0 else float(betaincinv(gained, rows - gained + 1, _OUTSIDE / 2))
    high = 1.0 if gained == rows else float(betaincinv(gained + 1, rows - gained, 1 - _OUTSIDE / 2))
    return min(low, most), min(high, most)


def _most_lost(gained: np.ndarray, rows: int, margin: float, least: float) -> np.ndarray:
    """With so many answers gained, the most that may be lost where the score is at least so much; -1 where none may."""
    low, high = np.full(gained.shape, -1), rows - gained
    while (low < high).any():
        middle = (low + high + 1) // 2
        is_enough = score(gained, middle, rows, margin) >= least - _TIES
        low, high = np.where(is_enough, middle, low), np.where(is_enough, high, middle - 1)
    return low


def _at_most(count: np.ndarray, rows: np.ndarray, share: float) -> np.ndarray:
    """The chance of at most so many of some rows, each with this chance."""
    inside = 1 - betainc(np.maximum(count, 0) + 1.0, np.maximum(rows - count, 1e-9), share)
    return np.where(count < 0, 0.0, np.where(count >= rows, 1.0, inside))

"""Paired tests of the null hypothesis that the pruned model is worse than the untouched one by at least a margin.

Each row has a difference between -1 and 1: what the pruned model loses on it against the untouched one. For right and wrong
answers it is -1, 0 or 1. The null hypothesis says that the mean difference is at least the margin; a small p-value rejects
it. Simulations decided which test is used for which metric (``docs/statistics.md``).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from scipy.special import betainc, betaincinv, gammaln, xlog1py, xlogy

from axformer.scores.confidence import CONFIDENCE, RESAMPLES, SEED

ALPHA = 1 - CONFIDENCE
"""At most this share of certificates is false."""
_OUTSIDE = 1e-4
"""Probability that the rate of gained answers lies outside the searched interval; it is added to the p-value."""
_WIDTH = 2.0
"""Half of the width of that interval, in arcsines of roots times the root of the number of rows."""
_SHARES = 64
"""About so many grid steps lie in that interval; four times as many change a p-value by 0.0002 at most."""
_TIES = 1e-9
"""Largest difference of two scores that count as equal."""
_BLOCKS = 200
"""Most blocks of the jackknife that estimates the skewness of a metric."""
FEWEST_ROWS = 30
"""Fewest rows that the bootstrap certifies: its errors are 13 % on ten rows, 8 % on twenty and 6 % on thirty
(``docs/statistics.md``)."""
ASYMPTOTIC = ("worst_case", "sampled", "delta_method", "bca_bootstrap")
"""Tests whose level holds on many rows only."""
_NORMAL = NormalDist()


@dataclass(frozen=True)
class PairedTest:
    """The test of a task's models against the untouched model, on some rows."""

    name: Literal["exact", "betting", "delta_method", "bca_bootstrap"]
    metric: str
    """The tested metric in words."""
    p_value: Callable[[np.ndarray], float]
    """Computes a p-value from a model's table; it is small if the metric fell by less than the margin."""


def score(gained: np.ndarray, lost: np.ndarray, rows: int, margin: float) -> np.ndarray:
    """Tango's score (Statistics in Medicine 17, 1998): by how much the fall in accuracy stays below the margin.

    The unit is the standard deviation under a fall of exactly the margin. Lost answers lower the score, gained ones raise it.

    Args:
        gained: number of answers that became right, shape (n,).
        lost: number of answers that became wrong, shape (n,).
        margin: between 0 and 1.
    """
    spread = margin * (1 - margin)
    # The maximum-likelihood rate of gains under a fall of exactly the margin is the root of a quadratic equation.
    linear = margin * (2 * rows - lost + gained) - lost - gained
    share_gained = np.maximum(0.0, np.sqrt(linear**2 + 8.0 * rows * gained * spread) - linear) / (4 * rows)
    deviation = np.sqrt(rows * (2 * share_gained + spread))
    room = rows * margin - (lost - gained)
    certain = np.where(room > 0, np.inf, 0.0)
    return np.asarray(np.divide(room, deviation, out=certain, where=deviation > 0))


def exact_p_value(gained: int, lost: int, rows: int, margin: float, unlabelled: int = 0) -> float:
    """P-value of the exact unconditional test of right and wrong answers, ordered by Tango's score.

    It is the largest probability of a score at least this high when accuracy truly fell by the margin, over all rates of
    gained answers in a 99.99 % interval (Berger and Boos, 1994). It is exact for any number of rows.

    With changed answers without a label it is the worst case: no labels of these rows give a larger p-value. The score is the
    one where all of them were lost, and the interval holds those of every number of them that was gained, so the p-value falls
    with every label, whatever it says. It may therefore be looked at after each label, at no cost.

    Args:
        gained: number of answers that were wrong before and are right after.
        lost: number of answers that were right before and are wrong after.
        rows: number of all rows, at least 1, also of those with equal answers, whose labels do not matter.
        margin: as a fraction; values above 1 count as 1.
        unlabelled: number of answers that changed and have no label.
    """
    margin = min(margin, 1.0)
    observed = float(score(np.array([gained]), np.array([lost + unlabelled]), rows, margin)[0])
    limit = (1 - margin) / 2
    shares = _grid(*_shares_gained(gained, gained + unlabelled, rows, limit), rows, limit)
    most = _most_lost(rows, margin, observed, _window(rows, shares[0])[0], _window(rows, shares[-1])[1])
    return min(1.0, max(_chance(most, rows, share, share + margin) for share in shares) + _OUTSIDE)


def _grid(low: float, high: float, rows: int, limit: float) -> np.ndarray:
    """The points of a fixed grid of rates that cover an interval, so that a smaller interval has some of its points alone. They
    lie evenly by the arcsine of the root, where the interval of a rate is about as wide everywhere."""
    step = 2 * _WIDTH / (math.sqrt(rows) * _SHARES)
    first, last = (math.asin(math.sqrt(rate)) / step for rate in (low, high))
    return np.asarray(np.minimum(np.sin(np.arange(math.floor(first), math.ceil(last) + 1) * step) ** 2, limit))


def chance_of_score(least: float, rows: int, margin: float, gain: float, harm: float) -> float:
    """The exact probability that the score is at least a given value.

    Args:
        gain: rate of answers that become right.
        harm: rate of answers that become wrong.
    """
    return _chance(_most_lost(rows, margin, least, *_window(rows, gain)), rows, gain, harm)


def _window(rows: int, gain: float) -> tuple[int, int]:
    """The numbers of gained answers that matter, lower end first; the probability of the rest is far below 1e-9."""
    width = 8 * math.sqrt(rows * gain * (1 - gain)) + 12
    return max(0, math.floor(rows * gain - width)), min(rows, math.ceil(rows * gain + width))


def _chance(most: np.ndarray, rows: int, gain: float, harm: float) -> float:
    """The probability of at most so many lost answers, given by the number of gained ones, shape (rows + 1,)."""
    low, high = _window(rows, gain)
    gained = np.arange(low, high + 1)
    share_lost = 1.0 if gain >= 1 else min(1.0, harm / (1 - gain))
    return float((_binomial(gained, rows, gain) * _at_most(most[gained], rows - gained, share_lost)).sum())


def _binomial(count: np.ndarray, rows: int, rate: float) -> np.ndarray:
    """The probability of each count."""
    ways = gammaln(rows + 1) - gammaln(count + 1) - gammaln(rows - count + 1)
    return np.asarray(np.exp(ways + xlogy(count, rate) + xlog1py(rows - count, -rate)))


def betting_p_value(differences: np.ndarray, margin: float, most: np.ndarray | None = None) -> float:
    """P-value of a betting test (Waudby-Smith and Ramdas, 2024), for differences of any size.

    A gambler bets on each row in turn, sizing the bet by the variance of the rows before. Under the null hypothesis the bets
    do not win on average, so the wealth ever grows to 20 times its start with probability 5 % at most, for any number of
    rows. A fixed seed shuffles the rows.

    Args:
        differences: between -1 and 1, shape (rows,).
        margin: as a fraction.
        most: the largest that each difference can be, known without labels, shape (rows,). Bets are then sized by these, so a
            smaller difference never raises the p-value, which may therefore be looked at after every label. None sizes them by
            the differences.
    """
    order = np.random.default_rng(SEED).permutation(len(differences))
    sizing = None if most is None else most[None, order]
    return float(betting_p_values(differences[None, order], margin, sizing)[0])


def betting_p_values(differences: np.ndarray, margin: float, most: np.ndarray | None = None) -> np.ndarray:
    """P-values of :func:`betting_p_value` for many data sets at once, without shuffling.

    Args:
        differences: shape (sets, rows).
        margin: as a fraction.
        most: of the same shape.

    Returns:
        Shape (sets,).
    """
    rows = differences.shape[1]
    gains, bar = (1 - differences) / 2, (1 - margin) / 2
    if bar <= 0:
        return np.zeros(len(gains))
    seen, sizing = np.arange(1, rows + 1), gains if most is None else (1 - most) / 2
    means = (0.5 + sizing.cumsum(axis=1)) / (seen + 1)
    variances = (0.25 + ((sizing - means) ** 2).cumsum(axis=1)) / (seen + 1)
    before = np.column_stack([np.full(len(gains), 0.25), variances[:, :-1]])
    bets = np.minimum(np.sqrt(2 * math.log(1 / ALPHA) / (rows * before)), 0.9 / bar)
    log_wealth = np.log1p(bets * (gains - bar)).cumsum(axis=1).max(axis=1)
    return np.asarray(np.minimum(1.0, np.exp(-log_wealth)))


def worst_case_p_value(falls: np.ndarray, spreads: np.ndarray, margin: float) -> float:
    """P-value of the mean of what each row adds to the fall of a metric that is a ratio of sums, such as F1.

    It is *asymptotic*: a z-test. The standard deviation is that of the largest size that each row's fall can have, so the
    p-value falls with every label. It is never below that of the exact test where no answer changes, which a normal
    distribution knows nothing of.

    Args:
        falls: less than 0 in the mean if the metric fell by less than the margin, shape (rows,).
        spreads: the largest absolute value that each can have, known without labels, shape (rows,).
        margin: between 0 and 1.
    """
    rows = len(falls)
    if rows < FEWEST_ROWS:
        return 1.0
    deviation = math.sqrt(float((spreads**2).sum()))
    by_normal = 1.0 if deviation == 0 else _NORMAL.cdf(float(falls.sum()) / deviation)
    return max(by_normal, (1 - min(margin, 1.0)) ** rows)


def spearman_p_value(expected: np.ndarray, before: np.ndarray, after: np.ndarray, margin: float) -> float:
    """P-value of the fall of Spearman's correlation with numbers that people gave.

    It is *asymptotic*: a z-test by the delta method. The standard deviation is that of the rows' influences on the fall
    (the influence function of Croux and Dehon, 2010, with middle ranks). As in :func:`worst_case_p_value` no fewer rows pass
    than the exact test takes where no answer changes: so many does a model with the same ranks need.

    Args:
        expected: the numbers, shape (rows,).
        before: those of the untouched model, such as similarities, shape (rows,).
        after: those of the other model, shape (rows,).
        margin: between 0 and 1.
    """
    rows = len(expected)
    if rows < FEWEST_ROWS or not np.isfinite(after).all():  # as of a model whose training diverged
        return 1.0
    (old, old_influence), (new, new_influence) = (_spearman(expected, found) for found in (before, after))
    deviation = math.sqrt(float(((old_influence - new_influence) ** 2).sum())) / rows
    excess = old - new - margin
    by_normal = _NORMAL.cdf(excess / deviation) if deviation > 0 else float(excess >= 0)
    return max(by_normal, (1 - min(margin, 1.0)) ** rows)


def _spearman(first: np.ndarray, second: np.ndarray) -> tuple[float, np.ndarray]:
    """Spearman's correlation, ties at their middle ranks, and the influence of each row on it; 0 for a constant."""
    (both, of_both), (one, of_one), (other, of_other) = (
        _covariance_of_ranks(*pair) for pair in ((first, second), (first, first), (second, second))
    )
    spread = math.sqrt(max(one * other, 0.0))
    if spread < _TIES:
        return 0.0, np.zeros(len(first))
    correlation = both / spread
    return correlation, of_both / spread - correlation / 2 * (of_one / one + of_other / other)


def _covariance_of_ranks(first: np.ndarray, second: np.ndarray) -> tuple[float, np.ndarray]:
    """The covariance of ranks between 0 and 1, and the influence of each row on it, whose mean is 0. A row counts by its own
    ranks, and by the ranks of those above it, each of which it raises."""
    whole = np.ones(len(first))
    left, right = (1 - _mean_above(values, whole) for values in (first, second))
    product = float((left * right).mean())
    influence = left * right + _mean_above(first, right) + _mean_above(second, left) - 3 * product
    return product - 0.25, influence


def _mean_above(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """For each row the sum of the weights of rows with larger values, and half of those with equal ones, divided by the number
    of rows."""
    place = np.unique(values, return_inverse=True)[1]
    sums = np.bincount(place, weights=weights)
    return np.asarray((sums[::-1].cumsum()[::-1] - sums / 2)[place] / len(values))


def bootstrap_test(
    untouched: np.ndarray, measure: Callable[[np.ndarray], float], margin: float
) -> Callable[[np.ndarray], float]:
    """BCa bootstrap test (Efron, 1987), for metrics that are not means over rows.

    It is *asymptotic*: the error rate is close to its nominal level on many rows and above it on few, so fewer than
    :data:`FEWEST_ROWS` never pass. The p-value is the level at which the upper end of the one-sided interval of the fall equals
    the margin; it is 1 if the metric is not a finite number, as of a model whose training diverged.

    Args:
        untouched: the untouched model's table, one row per sample, shape (samples, columns).
        measure: computes the metric of such a table; larger is better.
        margin: in the unit of the metric.

    Returns:
        A function that computes the p-value of another model from its table on the same samples.
    """
    rows, rng = len(untouched), np.random.default_rng(SEED)
    if rows < FEWEST_ROWS:
        return lambda _: 1.0
    draws = [rng.integers(rows, size=rows) for _ in range(RESAMPLES)]
    blocks = np.array_split(np.arange(rows), min(rows, _BLOCKS))
    rests = [np.delete(np.arange(rows), block) for block in blocks]

    def measured(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        whole, drawn, left_out = (
            [measure(table[subset]) for subset in subsets] for subsets in ([np.arange(rows)], draws, rests)
        )
        return np.array(whole), np.array(drawn), np.array(left_out)

    before = measured(untouched)

    def p_value(table: np.ndarray) -> float:
        after = measured(table)
        fall, drawn, left_out = (value - value_after for value, value_after in zip(before, after, strict=True))
        if not (np.isfinite(fall).all() and np.isfinite(drawn).all() and np.isfinite(left_out).all()):
            return 1.0
        return bca_p_value(float(fall[0]), drawn, left_out, margin)

    return p_value


def bca_p_value(fall: float, drawn: np.ndarray, left_out: np.ndarray, margin: float) -> float:
    """The level at which the upper BCa end of a fall equals the margin, given bootstrapped and jackknifed falls."""
    away = left_out.mean() - left_out
    spread = float((away**2).sum()) ** 1.5
    skewness = float((away**3).sum()) / (6 * spread) if spread > 0 else 0.0
    bias = _NORMAL.inv_cdf(_share_below(drawn, fall))
    quantile = _NORMAL.inv_cdf(_share_below(drawn, margin)) - bias
    stretch = 1 + skewness * quantile
    return _NORMAL.cdf(bias - quantile / stretch) if stretch > 0 else float(quantile < 0)


def _share_below(drawn: np.ndarray, value: float) -> float:
    """Share of drawn figures below a value, ties counted half; never 0 or 1, since the number of draws is finite."""
    share = float(((drawn < value).sum() + 0.5 * (drawn == value).sum()) / len(drawn))
    return min(max(share, 0.5 / len(drawn)), 1 - 0.5 / len(drawn))


def _shares_gained(fewest: int, most: int, rows: int, limit: float) -> tuple[float, float]:
    """The Clopper-Pearson intervals of the rate of gained answers for each of these numbers of them, cut off at ``limit``."""
    low = 0.0 if fewest == 0 else float(betaincinv(fewest, rows - fewest + 1, _OUTSIDE / 2))
    high = 1.0 if most == rows else float(betaincinv(most + 1, rows - most, 1 - _OUTSIDE / 2))
    return min(low, limit), min(high, limit)


def _most_lost(rows: int, margin: float, least: float, first: int, last: int) -> np.ndarray:
    """For each number of gained answers from ``first`` to ``last``, the most that may be lost for the score to be at least
    ``least``, -1 for none; shape (rows + 1,), with -1 elsewhere."""
    gained = np.arange(first, last + 1)
    low, high = np.full(gained.shape, -1), rows - gained
    while (low < high).any():
        middle = (low + high + 1) // 2
        is_enough = score(gained, middle, rows, margin) >= least - _TIES
        low, high = np.where(is_enough, middle, low), np.where(is_enough, high, middle - 1)
    return np.pad(low, (first, rows - last), constant_values=-1)


def _at_most(count: np.ndarray, rows: np.ndarray, share: float) -> np.ndarray:
    """Binomial probability of at most ``count`` successes in ``rows`` rows, each with probability ``share``."""
    inside = 1 - betainc(np.maximum(count, 0) + 1.0, np.maximum(rows - count, 1e-9), share)
    return np.where(count < 0, 0.0, np.where(count >= rows, 1.0, inside))

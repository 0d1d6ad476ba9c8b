"""How sure measured figures are: bootstrap intervals (Efron and Tibshirani, 1993, chapter 13), McNemar's exact test, and
Tango's score test.

The samples are drawn with the same seed for every model, so the resampled figures of two models on one data set belong
together pair by pair, and their differences are those of a paired bootstrap.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

RESAMPLES = 1000
"""Enough for percentiles at 95 %, says the source; twice as many move an end by a few hundredths of the interval's width."""
CONFIDENCE = 0.95
"""The customary level; a test speaks of chance where its p-value is above the rest, 5 %."""
_ONE_SIDED = NormalDist().inv_cdf(CONFIDENCE)
"""What a normal variable exceeds one time in twenty."""
SEED = 0
"""Reports of the same figures are the same reports."""

Figures = dict[str, float]
Interval = tuple[float, float]


class McNemar(NamedTuple):
    """Samples on which two models differ, and how likely that is where neither is better."""

    gained: int
    """Wrong before, right after."""
    lost: int
    """Right before, wrong after."""
    p_value: float
    """Of the exact test, two-sided."""


def first_metric(figures: Figures) -> str:
    """The task's metric that is named first."""
    return next(name for name in figures if name != "loss")


def bootstrap(table: np.ndarray, measure: Callable[[np.ndarray], Figures]) -> dict[str, np.ndarray]:
    """Each figure on samples drawn with replacement, shape (RESAMPLES,).

    Args:
        table: a row a sample, shape (samples, columns).
        measure: the figures of such a table.
    """
    chance = np.random.default_rng(SEED)
    drawn = [measure(table[chance.integers(len(table), size=len(table))]) for _ in range(RESAMPLES)]
    return {name: np.array([figures[name] for figures in drawn]) for name in drawn[0]}


def interval(drawn: np.ndarray) -> Interval:
    """The percentile interval of a bootstrapped figure, lower end first."""
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def mcnemar(before: np.ndarray, after: np.ndarray) -> McNemar:
    """McNemar's exact test: of the samples on which two models differ, each should win half.

    Args:
        before: which samples the first model has right, bool, shape (samples,).
        after: the same of the second model.
    """
    gained, lost = int((~before & after).sum()), int((before & ~after).sum())
    p_value = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return McNemar(gained, lost, p_value)


def fell_no_further(gained: int, lost: int, samples: int, limit: float) -> bool:
    """Tango's score test (Statistics in Medicine 17, 1998): whether the share of right answers fell by less than the limit.

    One-sided at 5 %, of the same samples before and after. It asks how far the fall lies below the limit, against what it would
    spread by if it were just the limit, so answers that did not change are evidence only as far as there are many. By exact
    enumeration, for 20 to 2,000 samples, limits of 0.005 to 0.05 and up to 0.05 gained, a fall of just the limit passes in at
    most 7 % of data sets, and in 4 to 5 % of most.

    Args:
        gained: samples that were wrong before and are right after.
        lost: samples that were right before and are wrong after.
        samples: all of them.
        limit: of the fall, as a share; every fall is within 1.
    """
    limit = min(limit, 1.0)
    spread = limit * (1 - limit)
    # The likeliest share of gains if the fall were the limit is the root of a quadratic equation.
    linear = limit * (2 * samples - lost + gained) - lost - gained
    share_gained = max(0.0, math.sqrt(linear**2 + 8 * samples * gained * spread) - linear) / (4 * samples)
    room = samples * limit - (lost - gained)
    return room > _ONE_SIDED * math.sqrt(samples * (2 * share_gained + spread))


def fewest_samples(limit: float) -> int | None:
    """How many samples can show a fall below this limit where no answer changes; null where no number can."""
    fewest = _ONE_SIDED**2 * (1 - min(limit, 1.0)) / limit if limit else math.inf
    return None if math.isinf(fewest) else math.floor(fewest) + 1

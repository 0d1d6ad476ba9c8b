"""How sure measured figures are: bootstrap intervals (Efron and Tibshirani, 1993, chapter 13), and McNemar's exact test.

The samples are drawn with the same seed for every model, so the resampled figures of two models on one data set belong
together pair by pair, and their differences are those of a paired bootstrap.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, stdtrit

RESAMPLES = 1000
"""Enough for percentiles at 95 %, says the source; twice as many move an end by a few hundredths of the interval's width."""
CONFIDENCE = 0.95
"""The customary level; a test speaks of chance where its p-value is above the rest, 5 %."""
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
    p_value = 2 * float(bdtr(min(gained, lost), gained + lost, 0.5))  # as likely on either side
    return McNemar(gained, lost, min(1.0, p_value))


def lower_bound(gains: np.ndarray, alpha: float) -> float:
    """What the mean gain is above with confidence ``1 - alpha``, by Student's t over the samples.

    Exact for gains that spread like a normal distribution, near it for many samples of any other. Of fewer than two samples
    nothing is known: minus infinity.
    """
    count = len(gains)
    if count < 2:
        return -math.inf
    with np.errstate(invalid="ignore"):  # an infinite gain has no spread: the bound is not a number, above nothing
        error = float(gains.std(ddof=1)) / math.sqrt(count)
    return float(gains.mean()) - float(stdtrit(count - 1, 1 - alpha)) * error

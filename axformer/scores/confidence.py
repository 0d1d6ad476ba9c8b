"""Uncertainty of measured figures: bootstrap intervals (Efron and Tibshirani, 1993, chapter 13) and McNemar's exact test.

Every model is resampled with the same seed. The resampled figures of two models on one data set are therefore paired, and
their differences are those of a paired bootstrap.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr, stdtrit

from axformer.wire.metrics import LOWER_IS_BETTER

if TYPE_CHECKING:
    from axformer.wire.verdicts import McNemarTest

RESAMPLES = 1000
"""Enough for 95 % percentiles by the source; doubling it moves an end by a few hundredths of the interval's width."""
CONFIDENCE = 0.95
"""The usual level; a p-value above 5 % is taken for chance."""
SEED = 0
"""Fixed, so that the same figures always give the same report."""

Figures = dict[str, float]
Interval = tuple[float, float]


def rising_metric(figures: Figures) -> str:
    """The task's first metric of which more is better: of a language model its accuracy, which is Recall@1."""
    return next(name for name in figures if name not in LOWER_IS_BETTER)


def bootstrap(
    table: np.ndarray, measure: Callable[[np.ndarray], Figures], inputs: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Compute each figure on inputs drawn with replacement, shape (RESAMPLES,).

    An input is drawn with all of its copies: they are one cluster, since copies say nothing new (Davison and Hinkley, 1997,
    section 3.8).

    Args:
        table: one row per sample, shape (samples, columns).
        measure: computes the figures of such a table.
        inputs: the number of each sample's input, counted from 0, shape (samples,); None if none repeats.
    """
    rng = np.random.default_rng(SEED)
    sizes = np.bincount(np.arange(len(table)) if inputs is None else inputs)
    table = table if inputs is None else table[np.argsort(inputs, kind="stable")]
    ends = sizes.cumsum()

    def sample() -> np.ndarray:
        picked = rng.integers(len(sizes), size=len(sizes))
        if len(sizes) == len(table):  # none repeats
            return picked
        copies = sizes[picked]
        return np.repeat(ends[picked] - copies.cumsum(), copies) + np.arange(copies.sum())

    drawn = [measure(table[sample()]) for _ in range(RESAMPLES)]
    return {name: np.array([figures[name] for figures in drawn]) for name in drawn[0]}


def interval(drawn: np.ndarray) -> Interval:
    """The percentile interval of a bootstrapped figure, lower end first."""
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def mcnemar(before: np.ndarray, after: np.ndarray) -> "McNemarTest":
    """McNemar's exact test: two equally good models each win half of the samples on which they differ.

    Args:
        before: which samples the first model answers correctly, bool, shape (samples,).
        after: the same for the second model.
    """
    gained, lost = int((~before & after).sum()), int((before & ~after).sum())
    p_value = 2 * float(bdtr(min(gained, lost), gained + lost, 0.5))  # both sides are equally likely
    from axformer.wire.verdicts import McNemarTest  # builds the schemas of every verdict

    return McNemarTest(gained=gained, lost=lost, p_value=min(1.0, p_value))


def lower_bound(gains: np.ndarray, alpha: float) -> float:
    """Lower confidence bound of the mean gain at level ``1 - alpha``, by Student's t over the samples.

    It is exact for normally distributed gains and approximate for other distributions with many samples. With fewer than two
    samples it is minus infinity.
    """
    count = len(gains)
    if count < 2:
        return -math.inf
    with np.errstate(invalid="ignore"):  # an infinite gain makes the bound NaN, which is above nothing
        error = float(gains.std(ddof=1)) / math.sqrt(count)
    return float(gains.mean()) - float(stdtrit(count - 1, 1 - alpha)) * error

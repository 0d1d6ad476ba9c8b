"""The test of models whose answers are numbers, by labels of few rows: how far does the mean squared error rise?

Where a model answers ``delta`` more than the untouched one, whose error is ``e``, the squared error rises by ``delta^2 +
2 delta e``. The first term is known of every row, the second where there is a label. So rows are labelled with a probability in
proportion to ``abs(delta)``, and each counts by one over its probability (Horvitz and Thompson, 1952). A row has one random
number for all models, so they ask for nearly the same rows. No PyTorch.
"""

import hashlib
import math
from collections.abc import Iterable

import numpy as np
from scipy.special import log_ndtr

from axformer.scores.paired_tests import ALPHA, FEWEST_ROWS

MOST_LABELS = 300
"""Most labels that are asked for one model."""
_CRITICAL = 1.645
"""Standard errors above the margin at which a rise is out of reach."""


def draws_of(ids: Iterable[str]) -> np.ndarray:
    """A number for each row by its id, so that they differ from data set to data set: exponential, with mean 1."""
    digests = (hashlib.blake2b(id.encode(), digest_size=8).digest() for id in ids)
    return np.array([-math.log((int.from_bytes(digest) + 1) / 2**64) for digest in digests])


def keys_of(deltas: np.ndarray, draws: np.ndarray, is_given: np.ndarray) -> np.ndarray:
    """The order in which labels are asked for, the smallest first: exponential times at the rate ``abs(delta)``, so that the
    first ones are drawn in proportion to it, without replacement (Efraimidis and Spirakis, 2006). Infinite where it is 0.

    Args:
        deltas: what the model answers above the untouched one, shape (rows,).
        draws: a number for each row (:func:`draws_of`).
        is_given: the rows that came with a label, which are first.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(is_given, 0.0, np.where(deltas == 0, np.inf, draws / np.abs(deltas)))


def asked_rows(deltas: np.ndarray, draws: np.ndarray, is_given: np.ndarray) -> np.ndarray:
    """The rows whose labels are asked for, in their order; as for :func:`keys_of`."""
    keys = keys_of(deltas, draws, is_given)
    order = np.argsort(keys, kind="stable")
    return np.asarray(order[np.isfinite(keys[order]) & ~is_given[order]][:MOST_LABELS])


def rise_p_value(
    deltas: np.ndarray, draws: np.ndarray, is_given: np.ndarray, errors: np.ndarray, margin: float, scale: float
) -> tuple[float, bool]:
    """P-value of a rise of the mean squared error by at least a margin, and whether further labels can lower it.

    It is *asymptotic*. Estimates by more and more labels are close to Brownian motion in the inverse of their variance, so the
    largest of a half-normal mixture of likelihood ratios (Robbins, 1970; Waudby-Smith and others, 2021) may be looked at after
    every label; the mixture is as wide as the margin. Labels count up to the first row of the order that has none, and from
    :data:`axformer.scores.paired_tests.FEWEST_ROWS` on. The variance is that of the draw and that of the rows themselves.
    As in :func:`axformer.scores.paired_tests.worst_case_p_value` no fewer rows pass than the exact test takes.

    Args:
        deltas: as for :func:`keys_of`, like the next two.
        errors: what the untouched model answers above the label; not a number without one.
        margin: as a fraction of the scale.
        scale: the variance of the untouched model's answers.
    """
    rows, allowed = len(deltas), margin * scale
    if rows < FEWEST_ROWS or allowed <= 0 or not np.isfinite(deltas).all():
        return 1.0, False
    keys = keys_of(deltas, draws, is_given)
    order = np.argsort(keys, kind="stable")
    order = order[np.isfinite(keys[order])]
    given, asked = int(is_given.sum()), len(order)
    known = int(np.argmin(np.append(np.isfinite(errors[order]), False)))
    least = min(given + FEWEST_ROWS, asked)
    looks = {*range(least, min(known, given + MOST_LABELS) + 1), *([asked] if known == asked else [])}
    best, is_above = 0.0, False
    for count in sorted(looks):
        rise, variance = _rise(deltas, errors, keys, order, count)
        room = math.inf if variance == 0 and rise < allowed else (allowed - rise) / math.sqrt(variance or 1.0)
        best, is_above = max(best, _log_ratio(room, variance, allowed)), room < -_CRITICAL
    p_value = max(min(1.0, math.exp(-best)), (1 - min(margin, 1.0)) ** rows)
    return p_value, p_value > ALPHA and known < min(asked, given + MOST_LABELS) and not is_above


def _rise(
    deltas: np.ndarray, errors: np.ndarray, keys: np.ndarray, order: np.ndarray, count: int
) -> tuple[float, float]:
    """The rise by the labels of the first rows of the order, and its variance.

    The mean error in the direction of a move is a ratio of two estimates, so how much of all moves was drawn does not matter.
    """
    rows, drawn, is_given = len(deltas), order[:count], keys == 0
    limit = keys[order[count]] if count < len(order) else math.inf
    moved, leaning = np.abs(deltas[drawn]), np.sign(deltas[drawn]) * errors[drawn]
    own, shares = is_given[drawn], np.where(is_given[drawn], 1.0, -np.expm1(-limit * moved))
    weights = np.where(own, 0.0, moved / shares)
    lean = float((weights * leaning).sum() / (weights.sum() or 1.0))
    of_rest = 2 * lean * float(np.abs(deltas[~is_given]).sum())
    rise = float((deltas**2).sum() + 2 * (moved * leaning)[own].sum() + of_rest) / rows
    of_draw = float(((1 - shares) * (2 * weights * (leaning - lean)) ** 2).sum()) / rows**2
    of_rows = float(((moved**2 + 2 * moved * leaning) ** 2 / shares).sum()) / rows - rise**2
    return rise, of_draw + max(of_rows, 0.0) / rows


def _log_ratio(room: float, variance: float, allowed: float) -> float:
    """The logarithm of the mixture of likelihood ratios.

    Args:
        room: from the estimate up to the margin, in standard errors.
    """
    if math.isinf(room):
        return math.inf
    spread = math.inf if variance == 0 else allowed**2 / variance
    if math.isinf(spread):
        return 0.0
    weight = spread / (1 + spread)
    return float(math.log(2 / math.sqrt(1 + spread)) + weight * room**2 / 2 + log_ndtr(math.sqrt(weight) * room))

"""The test of models whose answers are numbers, by labels of few rows: how far does the mean squared error rise?

Where a model answers ``delta`` more than the untouched one, whose error is ``e``, the squared error rises by ``delta^2 +
2 delta e``. The first term is known of every row, the second where there is a label. So rows are labelled with a probability in
proportion to ``abs(delta)``, and each counts by one over its probability (Horvitz and Thompson, 1952). A row has one random
number for all models, so they ask for nearly the same rows. No PyTorch.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

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


@dataclass(frozen=True)
class Moves:
    """How a model's answers moved, and what is known of them; each of shape (rows,)."""

    deltas: np.ndarray
    """What it answers above the untouched model."""
    draws: np.ndarray
    """A number for each row (:func:`draws_of`)."""
    is_given: np.ndarray
    """Whether a label came with the row, whatever the models answer."""
    errors: np.ndarray
    """What the untouched model answers above the label; not a number without one."""

    @cached_property
    def order(self) -> np.ndarray:
        """The rows that may be labelled, as they are asked for: by exponential times at the rate ``abs(delta)``, so that the
        first ones are drawn in proportion to it, without replacement (Efraimidis and Spirakis, 2006)."""
        rows = np.flatnonzero(~self.is_given & (self.deltas != 0))
        return np.asarray(rows[np.argsort(self._keys(rows), kind="stable")])

    def limits(self, counts: np.ndarray) -> np.ndarray:
        """The time of the first row that is not among so many."""
        return np.asarray(np.append(self._keys(self.order), math.inf)[counts])

    def _keys(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.draws[rows] / np.abs(self.deltas[rows]))


def rise_p_value(moves: Moves, margin: float, scale: float) -> tuple[float, bool]:
    """P-value of a rise of the mean squared error by at least a margin, and whether further labels can lower it.

    It is *asymptotic*. Estimates by more and more labels are close to Brownian motion in the inverse of their variance, so the
    largest of a half-normal mixture of likelihood ratios (Robbins, 1970; Waudby-Smith and others, 2021) may be looked at after
    every label; the mixture is as wide as the margin. Labels count up to the first row of the order that has none, and from
    :data:`axformer.scores.paired_tests.FEWEST_ROWS` on. The variance is that of the draw and that of the rows themselves.
    As in :func:`axformer.scores.paired_tests.worst_case_p_value` no fewer rows pass than the exact test takes.

    Args:
        margin: as a fraction of the scale.
        scale: the variance of the untouched model's answers.
    """
    rows, allowed = len(moves.deltas), margin * scale
    if rows < FEWEST_ROWS or allowed <= 0 or not np.isfinite(moves.deltas).all():
        return 1.0, False
    asked = len(moves.order)
    known = int(np.argmin(np.append(np.isfinite(moves.errors[moves.order]), False)))
    looks = {*range(min(FEWEST_ROWS, asked), min(known, MOST_LABELS) + 1), *([known] if known == asked else [])}
    rises, variances = _rises(moves, np.array(sorted(looks), dtype=int))
    rooms = _in_errors(allowed - rises, variances)
    best = max((_log_ratio(*pair, allowed) for pair in zip(rooms, variances, strict=True)), default=0.0)
    p_value = max(min(1.0, math.exp(-best)), (1 - min(margin, 1.0)) ** rows)
    is_above = len(rooms) > 0 and rooms[-1] < -_CRITICAL
    return p_value, p_value > ALPHA and known < min(asked, MOST_LABELS) and not is_above


def _rises(moves: Moves, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rise by the given labels and those of the first rows of the order, and its variance, for each count of these.

    The mean error in the direction of a move is a ratio of two estimates, so how much of all moves was drawn does not matter.
    """
    deltas, rows, rest = moves.deltas, len(moves.deltas), ~moves.is_given
    drawn = moves.order[: max(counts, default=0)]
    steps, leaning = np.abs(deltas[drawn]), np.sign(deltas[drawn]) * moves.errors[drawn]
    shares = -np.expm1(-moves.limits(counts)[:, None] * steps)
    weights = np.where(np.arange(len(drawn)) < counts[:, None], steps / shares, 0.0)
    whole = weights.sum(axis=1)
    lean = np.divide((weights * leaning).sum(axis=1), whole, out=np.zeros(len(counts)), where=whole > 0)
    given = (deltas**2 + 2 * deltas * moves.errors)[moves.is_given]
    rises = (given.sum() + (deltas[rest] ** 2).sum() + 2 * lean * np.abs(deltas[rest]).sum()) / rows
    of_draw = ((1 - shares) * (2 * weights * (leaning - lean[:, None])) ** 2).sum(axis=1) / rows**2
    squares = (given**2).sum() + (weights * steps * (steps + 2 * leaning) ** 2).sum(axis=1)
    return rises, of_draw + np.maximum(squares / rows - rises**2, 0.0) / rows


def _in_errors(rooms: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Rooms in standard errors; infinite where there is no variance."""
    certain = np.where(rooms > 0, math.inf, 0.0)
    return np.asarray(np.divide(rooms, np.sqrt(variances), out=certain, where=variances > 0))


def _log_ratio(room: float, variance: float, allowed: float) -> float:
    """The logarithm of the mixture of likelihood ratios.

    Args:
        room: from the estimate up to the margin, in standard errors.
    """
    if not math.isfinite(room) or variance == 0:
        return max(room, 0.0)
    spread = allowed**2 / variance
    weight = spread / (1 + spread)
    return float(math.log(2 / math.sqrt(1 + spread)) + weight * room**2 / 2 + log_ndtr(math.sqrt(weight) * room))

"""Linear centred kernel alignment: how much two layers say the same (Kornblith et al., 2019; Dalvi et al., 2020, appendix A.6).

With the columns of X and Y centred, it is ``||X^T Y||^2 / (||X^T X|| ||Y^T Y||)`` in Frobenius norms. Only the products, of the
width of a layer, are held, summed in float64 over parts of the positions.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigvalsh

from axformer.analysis.representations import Representations
from axformer.wire.steps import Counter, OnStep, StepName, ignore, never

Chunks = Callable[[], Iterable[np.ndarray]]
"""Starts a stream of the rows of a matrix, in parts of shape (rows, columns)."""


@dataclass(frozen=True)
class Compared:
    """All hidden states of a model, compared."""

    alignment: np.ndarray
    """Of every pair of states, float64 of shape (states, states), symmetric, with ones on its diagonal."""
    leading: np.ndarray
    """Of each state, the share of its variance along its first principal direction, float64 of shape (states,). Where it is
    nearly one, alignments compare little but this direction, since directions weigh as much as they vary."""


def compare(
    states: Representations, most: int, seed: int, on_step: OnStep = ignore, check_cancelled: Callable[[], None] = never
) -> Compared:
    """Compare every pair of states.

    Args:
        states: the hidden states of a model.
        most: use so many positions, drawn at random where there are more.
        seed: of the draw.
        on_step: takes reports.
        check_cancelled: called before each pair; an exception from it ends the work.
    """
    count = states.layers + 1
    counter = Counter(StepName.COMPARING, count * (count + 1) // 2, on_step)
    norms, found, leading = np.zeros((count, count)), np.eye(count), np.zeros(count)
    places = np.sort(np.random.default_rng(seed).permutation(states.positions)[:most])
    streams: list[Chunks] = [partial(states.chunks, layer, places) for layer in range(count)]
    means = [mean_of(stream) for stream in streams]
    for one in range(count):
        for other in range(one, count):
            check_cancelled()
            product = _product(streams[one], streams[other], means[one], means[other])
            norms[one, other] = np.linalg.norm(product)
            if one == other:
                leading[one] = _leading(product)
            counter.advance()
    for one in range(count):
        for other in range(one + 1, count):
            found[one, other] = found[other, one] = _alignment(norms[one, other], norms[one, one], norms[other, other])
    return Compared(found, leading)


def cka(x: Chunks, y: Chunks) -> float:
    """The alignment of two matrices with the same rows."""
    means = mean_of(x), mean_of(y)
    products = _product(x, y, *means), _product(x, x, means[0], means[0]), _product(y, y, means[1], means[1])
    return _alignment(*(float(np.linalg.norm(product)) for product in products))


def mean_of(x: Chunks) -> np.ndarray:
    """The mean of each column, float64."""
    total, rows = 0.0, 0
    for part in x():
        total, rows = total + part.sum(axis=0), rows + len(part)
    return np.asarray(total / rows)


def _product(x: Chunks, y: Chunks, mean_x: np.ndarray, mean_y: np.ndarray) -> np.ndarray:
    """X^T Y with centred columns."""
    total = np.zeros((len(mean_x), len(mean_y)))
    for one, other in zip(x(), y(), strict=True):
        total += (one - mean_x).T @ (other - mean_y)
    return total


def _leading(covariance: np.ndarray) -> float:
    """The largest eigenvalue as a share of all; 0 where nothing varies."""
    last, trace = len(covariance) - 1, float(np.trace(covariance))
    return float(eigvalsh(covariance, subset_by_index=[last, last])[0]) / trace if trace else 0.0


def _alignment(product: float, own: float, others: float) -> float:
    """0 where one side is constant."""
    return min(1.0, product**2 / (own * others)) if own and others else 0.0

"""Linear centred kernel alignment: how much two layers say the same (Kornblith et al., 2019; Dalvi et al., 2020, appendix A.6).

With the columns of X and Y centred, it is ``||X^T Y||^2 / (||X^T X|| ||Y^T Y||)`` in Frobenius norms. Only the products, of the
width of a layer, are held, summed in float64 over parts of the positions.
"""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from axformer.analysis.representations import Representations
from axformer.wire.steps import Counter, OnStep, StepName, ignore, never

Chunks = Callable[[], Iterable[np.ndarray]]
"""Starts a stream of the rows of a matrix, in parts of shape (rows, columns)."""


def cka_matrix(
    states: Representations, most: int, on_step: OnStep = ignore, check_cancelled: Callable[[], None] = never
) -> np.ndarray:
    """The alignment of every pair of states, float64 of shape (states, states), symmetric, with ones on its diagonal.

    Args:
        states: the hidden states of a model.
        most: use the first so many positions.
        on_step: takes reports.
        check_cancelled: called before each pair; an exception from it ends the work.
    """
    count = states.layers + 1
    counter = Counter(StepName.COMPARING, count * (count + 1) // 2, on_step)
    norms, found = np.zeros((count, count)), np.eye(count)
    streams: list[Chunks] = [partial(states.chunks, layer, most) for layer in range(count)]
    means = [mean_of(stream) for stream in streams]
    for one in range(count):
        for other in range(one, count):
            check_cancelled()
            norms[one, other] = _norm_of_product(streams[one], streams[other], means[one], means[other])
            counter.advance()
    for one in range(count):
        for other in range(one + 1, count):
            found[one, other] = found[other, one] = _alignment(norms[one, other], norms[one, one], norms[other, other])
    return found


def cka(x: Chunks, y: Chunks) -> float:
    """The alignment of two matrices with the same rows."""
    means = mean_of(x), mean_of(y)
    norm = _norm_of_product(x, y, *means)
    return _alignment(norm, _norm_of_product(x, x, means[0], means[0]), _norm_of_product(y, y, means[1], means[1]))


def mean_of(x: Chunks) -> np.ndarray:
    """The mean of each column, float64."""
    total, rows = 0.0, 0
    for part in x():
        total, rows = total + part.sum(axis=0), rows + len(part)
    return np.asarray(total / rows)


def _norm_of_product(x: Chunks, y: Chunks, mean_x: np.ndarray, mean_y: np.ndarray) -> float:
    """The Frobenius norm of X^T Y with centred columns."""
    total = np.zeros((len(mean_x), len(mean_y)))
    for one, other in zip(x(), y(), strict=True):
        total += (one - mean_x).T @ (other - mean_y)
    return float(np.linalg.norm(total))


def _alignment(product: float, own: float, others: float) -> float:
    """0 where one side is constant."""
    return min(1.0, product**2 / (own * others)) if own and others else 0.0

"""Linear centred kernel alignment: how much two layers say the same (Kornblith et al., 2019; Dalvi et al., 2020, appendix A.6).

The papers' ``||X^T Y||^2 / (||X^T X|| ||Y^T Y||)``, of centred columns in Frobenius norms, is biased: 500 rows of 768 columns
that have nothing to do with each other come to 0.61. So the unbiased estimator of the dependence takes the place of the norms
(Song et al., Feature Selection via Dependence Maximization, 2012, equation 5), by which they come to 0 in the mean. For linear
kernels it needs the products, of the width of a layer, and the length of each row; both are summed in float64 over parts of the
positions.
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
_FEWEST = 4


@dataclass(frozen=True)
class Compared:
    """All hidden states of a model, compared."""

    alignment: np.ndarray
    """Of every pair of states, float64 of shape (states, states), symmetric, from 0 to 1. A state that is the same at every
    position has nothing in common with any, itself included."""
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
    shared, leading = np.zeros((count, count)), np.zeros(count)
    places = np.sort(np.random.default_rng(seed).permutation(states.positions)[:most])
    centred = [Centred.of(partial(states.chunks, layer, places)) for layer in range(count)]
    for one in range(count):
        for other in range(one, count):
            check_cancelled()
            product = _product(centred[one], centred[other])
            shared[one, other] = shared[other, one] = _dependence(product, centred[one], centred[other])
            if one == other:
                leading[one] = _leading(product)
            counter.advance()
    own = shared.diagonal()
    pairs = [[_alignment(shared[one, other], own[one], own[other]) for other in range(count)] for one in range(count)]
    return Compared(np.array(pairs), leading)


def cka(x: Chunks, y: Chunks) -> float:
    """The alignment of two matrices with the same rows, four at least."""
    one, other = Centred.of(x), Centred.of(y)
    return _alignment(*(_dependence(_product(*pair), *pair) for pair in ((one, other), (one, one), (other, other))))


@dataclass(frozen=True)
class Centred:
    """A matrix whose columns are centred."""

    chunks: Chunks
    """As it is."""
    mean: np.ndarray
    """Of each column, float64."""
    lengths: np.ndarray
    """The square of each row's length, once it is centred, float64."""

    @classmethod
    def of(cls, chunks: Chunks) -> "Centred":
        """Read the matrix twice."""
        total, rows = 0.0, 0
        for part in chunks():
            total, rows = total + part.sum(axis=0), rows + len(part)
        mean = np.asarray(total / rows)
        return cls(chunks, mean, np.concatenate([np.square(part - mean).sum(axis=1) for part in chunks()]))


def _product(x: Centred, y: Centred) -> np.ndarray:
    """X^T Y with centred columns."""
    total = np.zeros((len(x.mean), len(y.mean)))
    for one, other in zip(x.chunks(), y.chunks(), strict=True):
        total += (one - x.mean).T @ (other - y.mean)
    return total


def _dependence(product: np.ndarray, x: Centred, y: Centred) -> float:
    """The unbiased estimate of the Hilbert-Schmidt independence criterion, times ``n (n - 3)``, which cancels in alignments; 0
    of fewer than four rows, which tell nothing."""
    if len(x.lengths) < _FEWEST:
        return 0.0
    rows, together = len(x.lengths), float(x.lengths @ y.lengths)
    apart = float(x.lengths.sum() * y.lengths.sum())
    return float(np.square(product).sum()) - rows * together / (rows - 2) + apart / ((rows - 1) * (rows - 2))


def _leading(covariance: np.ndarray) -> float:
    """The largest eigenvalue as a share of all; 0 where nothing varies."""
    last, trace = len(covariance) - 1, float(np.trace(covariance))
    return float(eigvalsh(covariance, subset_by_index=[last, last])[0]) / trace if trace else 0.0


def _alignment(shared: float, own: float, others: float) -> float:
    """0 where one side is constant."""
    return min(1.0, max(0.0, shared / (own * others) ** 0.5)) if own > 0 and others > 0 else 0.0

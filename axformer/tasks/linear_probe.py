"""A linear probe: how well a linear classifier tells classes apart by vectors that know nothing of them.

It is a ridge regression on the classes, one output for each, in closed form (Hoerl and Kennard, 1970), so that the same vectors
always give the same figure. The penalty is what an average direction of the vectors holds, so their scale does not matter.
"""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from axformer.data.rows import Rows
from axformer.errors import DataError

FOLDS = 5
"""Parts of the rows. Each is answered by a classifier that was fitted to the others."""
_SEED = 0
"""Fixed, so that two models have the same parts."""


def classes_in(rows: Rows) -> list[int]:
    """The class of each row, counted from 0 in the order of their names.

    Raises:
        DataError: a label is no name or number, there is one class alone, or a class has fewer than :data:`FOLDS` rows.
    """
    names = [str(label) for label in rows.labels("label")]
    known, classes, counts = np.unique(names, return_inverse=True, return_counts=True)
    if len(known) < 2 or counts.min() < FOLDS:
        raise DataError(
            f"data file '{rows.source}': a linear probe takes two classes or more with {FOLDS} rows or more each"
        )
    found: list[int] = classes.tolist()
    return found


def right_by_probe(vectors: Tensor, classes: Sequence[int], texts: Sequence[int]) -> np.ndarray:
    """Which rows a linear classifier answers rightly that was fitted to other rows; 1 or 0, shape (rows,).

    Args:
        vectors: of the rows, shape (rows, numbers); numbers that are none, as of a training that diverged, count as 0.
        classes: of the rows, from 0.
        texts: equal for copies of a text, which stay in one part.
    """
    wanted, inputs = np.array(classes), np.nan_to_num(vectors.double().numpy(), posinf=0.0, neginf=0.0)
    targets, right = np.eye(wanted.max() + 1)[wanted], np.zeros(len(wanted))
    folds = _folds(wanted, np.array(texts))
    for fold in range(FOLDS):
        held, known = folds == fold, folds != fold
        center, shares = inputs[known].mean(axis=0), targets[known].mean(axis=0)
        weights = _ridge(inputs[known] - center, targets[known] - shares)
        right[held] = ((inputs[held] - center) @ weights + shares).argmax(axis=1) == wanted[held]
    return right


def _ridge(inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    squares = inputs.T @ inputs
    penalty = max(float(np.trace(squares)) / len(squares), np.finfo(float).tiny)
    return np.linalg.solve(squares + penalty * np.eye(len(squares)), inputs.T @ targets)


def _folds(classes: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """The part of each row; every part has about the same share of each class."""
    _, first, place = np.unique(texts, return_index=True, return_inverse=True)
    order = np.lexsort((np.random.default_rng(_SEED).permutation(len(first)), classes[first]))
    part = np.empty(len(first), dtype=int)
    part[order] = np.arange(len(first)) % FOLDS
    return np.asarray(part[place])

"""A linear probe: how well a linear classifier tells classes apart by vectors that know nothing of them.

It is scikit-learn's logistic regression of at most 100 iterations, as MTEB has it (Muennighoff and others, 2023), but
cross-validated on the rows that are given, so that it needs no others.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from axformer.data.rows import Rows
from axformer.errors import DataError

FOLDS = 5
"""Parts of the rows. Each is answered by a classifier that was fitted to the others."""
ITERATIONS = 100


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
    """Which rows a linear classifier answers rightly that was fitted to other rows; 1 or 0, shape (rows,). All are NaN where a
    class has fewer than :data:`FOLDS` different texts.

    Args:
        vectors: of the rows, shape (rows, numbers); numbers that are none, as of a training that diverged, count as 0.
        classes: of the rows, from 0.
        texts: equal for copies of a text, which stay in one part.
    """
    from sklearn.exceptions import ConvergenceWarning  # slow to import, and only probes need it
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict

    wanted, inputs = np.array(classes), np.nan_to_num(vectors.double().numpy(), posinf=0.0, neginf=0.0)
    if np.unique(np.unique([classes, texts], axis=1)[0], return_counts=True)[1].min() < FOLDS:
        return np.full(len(wanted), np.nan)
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)  # the same parts for every model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # some iterations are what is asked for
        found = cross_val_predict(LogisticRegression(max_iter=ITERATIONS), inputs, wanted, groups=texts, cv=folds)
    return np.asarray(found == wanted, dtype=float)

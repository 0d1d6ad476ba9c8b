"""Numeric labels, for models with one output or with several numeric outputs, and their correlation with predictions."""

import math
from typing import Any

import numpy as np

from axformer.data.labels import truth_of
from axformer.data.rows import Label, Rows

_MOST = 1e15
"""Larger numbers are no labels: squares of their sums overflow float32."""


def number_of(value: Label, rows: Rows, row: int) -> float:
    """Convert a label to a number; truth values become 0 or 1.

    Raises:
        DataError: it is not a number up to 1e15; the message names the row, counted from 1.
    """
    truth = truth_of(value)
    try:
        number = float(value if truth is None else truth)
    except (ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= _MOST:
        raise rows.error(
            row,
            f"label {value!r} is not a number; the model's outputs are not classes, so its labels are numbers, 0 and 1 "
            "where it says no or yes",
        )
    return number


def numbers_in(rows: Rows) -> list[float]:
    """The number of each row.

    Raises:
        DataError: a label is not a finite number.
    """
    return [number_of(value, rows, row) for row, value in enumerate(rows.labels("label"), 1)]


def number_lists_in(rows: Rows, count: int) -> list[list[float]]:
    """The numbers of each row, from ``labels`` or else from ``label``, or from the one that was named; a single number need not
    be a list.

    Raises:
        DataError: a label is not a finite number, or a row has a different count.
    """
    if count == 1:
        return [[number] for number in numbers_in(rows)]
    is_label = not rows.has("labels") or (rows.is_named("label") and not rows.is_named("labels"))
    lists: list[Any] = rows.label_lists("label" if is_label else "labels")
    for row, values in enumerate(lists, 1):
        if len(values) != count:
            raise rows.error(row, f"it has {len(values)} labels, the model has {count} outputs; give one for each")
    return [[number_of(value, rows, row) for value in values] for row, values in enumerate(lists, 1)]


def correlations(expected: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Pearson's and Spearman's correlation, averaged over the outputs, as in GLUE's STS-B.

    Args:
        expected: shape (samples, outputs).
        predicted: the same.
    """
    from scipy.stats import rankdata  # takes long to import, and few tasks need it

    ranked = rankdata(expected, axis=0), rankdata(predicted, axis=0)
    return {"pearson": _mean(expected, predicted), "spearman": _mean(*ranked)}


def _mean(expected: np.ndarray, predicted: np.ndarray) -> float:
    outputs = zip(expected.T, predicted.T, strict=True)
    return float(np.mean([_correlation(left, right) for left, right in outputs]))


def _correlation(left: np.ndarray, right: np.ndarray) -> float:
    """Pearson's correlation; 0 for a constant."""
    if np.ptp(left) == 0.0 or np.ptp(right) == 0.0:
        return 0.0
    return float(np.corrcoef(left, right)[0, 1])

"""Correlation of predicted and expected numbers, as in GLUE's STS-B."""

import numpy as np


def correlations(expected: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Pearson's and Spearman's correlation, averaged over the outputs.

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

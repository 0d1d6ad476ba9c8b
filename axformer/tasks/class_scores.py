"""Scores of predicted classes from plain counts, since a bootstrap computes them thousands of times."""

import math

import numpy as np


def class_scores(expected: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Accuracy, Matthews' correlation and the mean of the classes' F1 scores.

    Matthews' correlation is Gorodkin's generalization, and 0 if one side has only one class. F1 averages the classes that occur
    on either side.

    Args:
        expected: indices of classes, shape (samples,).
        predicted: the same.
    """
    count = len(expected)
    classes = int(max(expected.max(), predicted.max())) + 1
    right = np.bincount(expected[expected == predicted], minlength=classes)
    truly, claimed = np.bincount(expected, minlength=classes), np.bincount(predicted, minlength=classes)
    spread = math.sqrt(float(count**2 - claimed @ claimed) * float(count**2 - truly @ truly))
    return {
        "accuracy": float(right.sum()) / count,
        "matthews_correlation": float(right.sum() * count - claimed @ truly) / spread if spread else 0.0,
        "f1_macro": f1_macro(right, claimed, truly),
    }


def f1(right: float, claimed: float, truly: float) -> float:
    """The harmonic mean of precision and recall, from the counts of hits, predicted and expected; 0 if both are 0."""
    return 2 * right / (claimed + truly) if claimed + truly else 0.0


def f1_macro(right: np.ndarray, claimed: np.ndarray, truly: np.ndarray) -> float:
    """The mean F1 of the classes that occur on either side, from their counts; 0 if none does."""
    occurs = claimed + truly > 0
    return float(np.mean(2 * right[occurs] / (claimed + truly)[occurs])) if occurs.any() else 0.0


def average_precision(expected: np.ndarray, scores: np.ndarray) -> float:
    """The average precision over the ranking by score, with ties taken together; 0 if nothing is true.

    Args:
        expected: 1 if true, otherwise 0; shape (samples,).
        scores: higher is more likely; the same shape.
    """
    order = np.argsort(-scores, kind="stable")
    hits, ordered = np.cumsum(expected[order]), scores[order]
    last = np.append(ordered[1:] != ordered[:-1], True).nonzero()[0]
    if not hits[-1]:
        return 0.0
    return float(np.sum(np.diff(hits[last], prepend=0.0) * hits[last] / (last + 1)) / hits[-1])

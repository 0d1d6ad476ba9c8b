"""The metrics that the benchmarks report, computed without AxFormer's own code."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def class_metrics(predicted: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> dict[str, float]:
    """Accuracy, and Matthews correlation: that of the two one-hot codings, 0 where only one class is seen."""
    classes = np.arange(max(int(predicted.max()), int(truth.max())) + 1)
    x = predicted[:, None] == classes
    y = truth[:, None] == classes
    x, y = x - x.mean(0), y - y.mean(0)
    spread = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return {
        "accuracy": float((predicted == truth).mean()),
        "matthews": float((x * y).sum()) / spread if spread else 0.0,
    }


def f1(right: int, found: int, true: int) -> float:
    """Harmonic mean of precision (``right`` of ``found``) and recall (``right`` of ``true``); 0 where nothing is right."""
    return 2 * right / (found + true) if right else 0.0


def answer_scores(answer: str, accepted: Sequence[str]) -> tuple[float, float]:
    """SQuAD's exact match and F1 over words, against the accepted answer that fits best.

    Case, punctuation and articles do not count.
    """
    words = _words(answer)
    exact = max(float(words == _words(one)) for one in accepted)
    overlap = max(
        f1(sum((Counter(words) & Counter(true)).values()), len(words), len(true)) for true in map(_words, accepted)
    )
    return exact, overlap


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()

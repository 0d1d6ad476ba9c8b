"""The metrics of SQuAD v1.1: exact match, and F1 over words, ignoring case, punctuation, articles and spaces."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def words_of(answer: str) -> list[str]:
    """The normalised words of an answer: lower case, without ASCII punctuation, then without articles, split at spaces."""
    return _ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def exact_match(predicted: str, expected: Sequence[str]) -> float:
    """1 if the prediction is one of the right answers, otherwise 0."""
    return _best(lambda one, other: float(one == other), predicted, expected)


def word_f1(predicted: str, expected: Sequence[str]) -> float:
    """The F1 of the words shared by prediction and right answer, for the best-matching right answer."""
    return _best(_overlap, predicted, expected)


def _best(score: Callable[[list[str], list[str]], float], predicted: str, expected: Sequence[str]) -> float:
    words = words_of(predicted)
    return max(score(words, words_of(answer)) for answer in expected)


def _overlap(predicted: list[str], expected: list[str]) -> float:
    if not predicted or not expected:
        return float(predicted == expected)
    shared = (Counter(predicted) & Counter(expected)).total()
    return 2 * shared / (len(predicted) + len(expected))

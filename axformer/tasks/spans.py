"""Spans of tokens in the windows of a context: the position of an answer, and the span that a model predicts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

N_BEST = 20
"""Candidate starts and ends per window; the best span is very rarely among the others (as in BERT's SQuAD program)."""
MAX_ANSWER_TOKENS = 30
"""Most tokens of an answer; nearly all of SQuAD's are shorter (as in BERT's SQuAD program)."""


@dataclass(frozen=True)
class Window:
    """A part of a context in a model row."""

    first: int
    """Position of its first token in the model row."""
    offsets: np.ndarray
    """First character of each token and the one after its last, shape (tokens, 2)."""
    nowhere: int
    """Position in the model row that means "not in this window": the classification token."""

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """The positions of the first and last token of characters ``start`` to ``end`` (exclusive); ``nowhere`` twice if the
        window does not contain all of them."""
        if not len(self.offsets) or self.offsets[0, 0] > start or self.offsets[-1, 1] < end:
            return self.nowhere, self.nowhere
        first = int(np.argmax(self.offsets[:, 1] > start))
        last = len(self.offsets) - 1 - int(np.argmax(self.offsets[::-1, 0] < end))
        return self.first + first, self.first + last


@dataclass(frozen=True)
class SpanScores:
    """The most likely starts and ends of a model row: their positions and logits, each of shape (n best,)."""

    starts: np.ndarray
    start_logits: np.ndarray
    ends: np.ndarray
    end_logits: np.ndarray
    nowhere: float
    """The sum of the start and end logits at the position for "not in this window"."""


def best_span(windows: Sequence[tuple[Window, SpanScores]], *, may_be_empty: bool = False) -> tuple[int, int]:
    """The characters (end exclusive) of the span with the largest sum of logits over all windows; empty if none fits.

    Args:
        may_be_empty: whether "nowhere" is allowed. As in BERT's program for SQuAD 2.0, the span is then empty if the lowest
            "nowhere" score of all windows is above the score of the best span.
    """
    best, span = min(scores.nowhere for _, scores in windows) if may_be_empty else -np.inf, (0, 0)
    for window, scores in windows:
        starts, ends = scores.starts[:, None] - window.first, scores.ends[None, :] - window.first
        fits = (starts >= 0) & (starts <= ends) & (ends < len(window.offsets)) & (ends - starts < MAX_ANSWER_TOKENS)
        sums = np.where(fits, scores.start_logits[:, None] + scores.end_logits[None, :], -np.inf)
        row, column = np.unravel_index(int(sums.argmax()), sums.shape)
        if sums[row, column] > best:
            best = sums[row, column]
            first, last = window.offsets[starts[row, 0]], window.offsets[ends[0, column]]
            span = int(first[0]), int(last[1])
    return span

"""Spans of tokens in the windows of a context: where an answer lies, and which one a model means."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

N_BEST = 20
"""Starts and ends looked at in a window; the best span lies outside these very rarely (the number of BERT's SQuAD program)."""
MAX_ANSWER_TOKENS = 30
"""Longer spans are not answers: of SQuAD's nearly all are shorter (the number of BERT's SQuAD program)."""


@dataclass(frozen=True)
class Window:
    """A part of a context, as a model row holds it."""

    first: int
    """The place of its first token in the model row."""
    offsets: np.ndarray
    """First character of each of its tokens and the one behind the last, shape (tokens, 2)."""
    nowhere: int
    """The place in the model row that stands for "not in this window": that of the classification token."""

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """The places of the first and the last token of characters ``start`` to ``end`` (exclusive); ``nowhere`` twice where
        the window does not hold all of them."""
        if not len(self.offsets) or self.offsets[0, 0] > start or self.offsets[-1, 1] < end:
            return self.nowhere, self.nowhere
        first = int(np.argmax(self.offsets[:, 1] > start))
        last = len(self.offsets) - 1 - int(np.argmax(self.offsets[::-1, 0] < end))
        return self.first + first, self.first + last


@dataclass(frozen=True)
class SpanScores:
    """The most likely starts and ends of a model row: places in it, and their logits, each of shape (n best,)."""

    starts: np.ndarray
    start_logits: np.ndarray
    ends: np.ndarray
    end_logits: np.ndarray
    nowhere: float
    """The sum of the logits of start and end where "not in this window" is."""


def best_span(windows: Sequence[tuple[Window, SpanScores]], *, may_be_empty: bool = False) -> tuple[int, int]:
    """The characters, end exclusive, of the span with the largest sum of logits over all windows; empty where none fits.

    Args:
        may_be_empty: whether "nowhere" counts too. Then the span is empty where the window that is least sure of it is surer
            of it than of the best span, as in BERT's program for SQuAD 2.0.
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

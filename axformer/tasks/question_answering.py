"""Extractive question answering: find the part of a context that answers a question.

The metrics are those of SQuAD v1.1: exact match, and F1 over words, ignoring case, punctuation, articles and spaces.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch
from axformer.data.encoding import Encoded, TokenLimits, in_parts, require_fast
from axformer.data.rows import Rows
from axformer.data.written import words_of
from axformer.tasks.divergence import Predicted, where
from axformer.tasks.guess import Guess, mean_by_sample
from axformer.tasks.right_answers import right_answers, some_have_none
from axformer.tasks.standing import LabelAgreement
from axformer.wire.answer_sheet import QUESTIONS

OVERLAP = 0.25
"""The share of a window that the next one repeats, so that an answer at its edge is complete in one of them; for BERT's 512
tokens that is 128, the stride of BERT's SQuAD program."""
NO_ANSWER = ""
"""The right answer to a question without one."""
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


@dataclass(frozen=True)
class SpanReading:
    """Converts token positions to answers."""

    windows: list[Window]
    """One window per model row."""
    contexts: list[str]
    """One context per sample."""
    answers: list[list[str]]
    """The right answers of each sample; empty if it has none."""


@dataclass(frozen=True)
class QuestionAnswering:
    """One span for each question; the loss of a window is the mean of the cross-entropies of start and end.

    A context that is longer than the model's input is split into overlapping windows. The label of a window without the answer
    is the classification token, and a question's loss is the mean over its windows.
    """

    may_abstain: bool = False
    """Whether a question may have no answer, as in SQuAD 2.0. Its right answer is then the empty text, which the model gives if
    the classification token beats every span. Otherwise the best span is the answer, however unlikely."""

    name = QUESTIONS
    pooled = False
    pipeline = None  # removed in transformers 5

    @classmethod
    def of(cls, rows: Rows | None) -> "QuestionAnswering":
        """The variant of the task for the deciding rows; without rows, every question has an answer."""
        return cls(rows is not None and some_have_none(rows))

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:  # noqa: ARG002
        require_fast(tokenizer, "which characters a token stands for")
        rows.require("context")
        right = right_answers(rows, may_be_none=self.may_abstain)
        encoded = with_answers(_without_answers(rows, tokenizer, limits), right.answers)
        texts = encoded.reading.answers
        alike = None if any(texts) else "no answer to any question"
        return replace(encoded, alike=alike, notes=(*right.notes, *self._notes(texts)))

    def inputs(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:  # noqa: ARG002
        """The questions with their contexts, as if none had an answer."""
        require_fast(tokenizer, "which characters a token stands for")
        return _without_answers(rows, tokenizer, limits)

    def _notes(self, texts: list[list[str]]) -> tuple[str, ...]:
        if not self.may_abstain:
            return ()
        return (
            f"{texts.count([])} of {len(texts)} questions have no answer, so the model may give none, as in SQuAD 2.0: it does "
            "where the classification token outdoes every span",
        )

    def losses(self, output: Any, batch: Batch) -> Tensor:
        places = batch.labels + batch.starts()[:, None]
        start, end = _logits(output, batch)
        losses = [
            functional.cross_entropy(logits, places[:, side], reduction="none")
            for side, logits in enumerate((start, end))
        ]
        return (losses[0] + losses[1]) / 2

    def predicted(self, output: Any, batch: Batch) -> Predicted:
        sides = torch.stack(_logits(output, batch), dim=1)
        return where(sides, torch.ones(sides.shape[:2], dtype=torch.bool, device=sides.device))

    def answers(self, output: Any, batch: Batch) -> list[SpanScores]:
        best = min(N_BEST, batch.tokens)
        columns: list[np.ndarray] = []
        for logits in _logits(output, batch):
            scores, places = torch.topk(logits, best)
            columns += [(places - batch.starts()[:, None]).cpu().numpy(), scores.double().cpu().numpy()]
        return [SpanScores(*row) for row in zip(*columns, _nowhere(output, batch), strict=True)]

    def statistics(self, answers: Sequence[SpanScores], encoded: Encoded) -> np.ndarray:
        """Exact match and F1, between 0 and 1, and whether there is an answer."""
        pairs = zip(self.spans(answers, encoded), encoded.reading.answers, strict=True)
        return np.array([self.scores(text, expected) for (_, text), expected in pairs], dtype=float)

    def spans(self, answers: Sequence[SpanScores], encoded: Encoded) -> list[tuple[int, str]]:
        """The answer to each question, with the character of the context where it begins."""
        reading: SpanReading = encoded.reading
        seen: list[list[tuple[Window, SpanScores]]] = [[] for _ in range(encoded.samples)]
        for sample, window, scores in zip(encoded.sample_of_row, reading.windows, answers, strict=True):
            seen[sample].append((window, scores))
        ends = [best_span(windows, may_be_empty=self.may_abstain) for windows in seen]
        return [(start, text[start:end]) for (start, end), text in zip(ends, reading.contexts, strict=True)]

    def scores(self, predicted: str, expected: list[str]) -> tuple[float, float, bool]:
        """Exact match and F1 of a text, and whether there are right answers. Like SQuAD 2.0, it skips answers that normalise
        to nothing, such as ``the``."""
        right = [answer for answer in expected if words_of(answer)] or [NO_ANSWER] if self.may_abstain else expected
        return exact_match(predicted, right), word_f1(predicted, right), bool(expected)

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        """Metrics over all questions; if some have no answer, also over answerable and unanswerable ones separately."""
        exact, overlap, answered = statistics.T
        scores = {"exact_match": float(exact.mean()), "f1": float(overlap.mean())}
        if not self.may_abstain:
            return scores
        parts = {"answerable_f1": overlap[answered == 1.0], "unanswerable_accuracy": exact[answered == 0.0]}
        return scores | {name: float(part.mean()) if len(part) else 0.0 for name, part in parts.items()}

    def correct(self, statistics: np.ndarray) -> np.ndarray:
        """A sample is right if the answer matches exactly."""
        return np.asarray(statistics[:, 0] == 1.0)

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        """Guess that every token of a window is equally likely to start or to end the answer."""
        rows = np.log(np.array(encoded.lengths))
        return Guess(losses=mean_by_sample(rows, np.array(encoded.sample_of_row), encoded.samples))

    def standing(self, answers: Sequence[SpanScores], encoded: Encoded, config: Any) -> LabelAgreement:  # noqa: ARG002
        return LabelAgreement(
            "whether question and context are swapped, whether answer_start counts characters of the context, and whether the "
            "model was fine-tuned for question answering",
            is_bar=False,
        )


def with_answers(encoded: Encoded, answers: Sequence[Sequence[tuple[int, str]]]) -> Encoded:
    """Questions with right answers, texts with the character where each begins; none where there is none."""
    reading: SpanReading = encoded.reading
    labels = [
        (*_place_of(answers[sample], window), window.nowhere)
        for window, sample in zip(reading.windows, encoded.sample_of_row, strict=True)
    ]
    texts = [[text for _, text in pairs] for pairs in answers]
    return replace(encoded, labels=labels, reading=replace(reading, answers=texts))


def _without_answers(rows: Rows, tokenizer: Any, limits: TokenLimits) -> Encoded:
    encoding = _windows(rows, tokenizer, limits.max_length or limits.max_tokens)
    features, sample_of_row = _features(encoding, len(rows))
    windows = [_window(encoding, place, tokenizer) for place in range(len(sample_of_row))]
    reading = SpanReading(windows, rows.texts("context"), [])
    return with_answers(Encoded(features, [], sample_of_row, reading=reading), [[]] * len(rows))


def _place_of(answers: Sequence[tuple[int, str]], window: Window) -> tuple[int, int]:
    """The positions of the first and last token of the first right answer in the window, or "nowhere"."""
    if not answers:
        return window.nowhere, window.nowhere
    start, text = answers[0]
    return window.locate(start, start + len(text))


def _windows(rows: Rows, tokenizer: Any, length: int | None) -> Any:
    """Encode all questions with their contexts in windows of at most ``length`` tokens."""
    questions, contexts = rows.texts("question"), rows.texts("context")
    options: dict[str, Any] = {"return_offsets_mapping": True, "return_attention_mask": True}
    if length is None:
        return in_parts(tokenizer, questions, contexts, truncation=False, verbose=False, **options)
    overlap = int(length * OVERLAP)
    room = length - tokenizer.num_special_tokens_to_add(pair=True)
    question_ids = in_parts(tokenizer, questions, add_special_tokens=False, verbose=False)["input_ids"]
    for row, ids in enumerate(question_ids, start=1):
        if room - len(ids) <= overlap:
            raise rows.error(
                row,
                f"the question has {len(ids)} tokens, which leaves {max(0, room - len(ids))} of {length} for the context, "
                f"and windows overlap by {overlap}; shorten it, or raise max_length",
            )
    options |= {"truncation": "only_second", "max_length": length, "stride": overlap, "return_overflowing_tokens": True}
    return in_parts(tokenizer, questions, contexts, **options)


def _features(encoding: Any, rows: int) -> tuple[dict[str, list[Any]], list[int]]:
    """What the model takes of an encoding, and the place of each window's sample."""
    features = dict(encoding)
    del features["offset_mapping"]
    return features, list(features.pop("overflow_to_sample_mapping", range(rows)))


def _window(encoding: Any, row: int, tokenizer: Any) -> Window:
    ids, sequences = encoding["input_ids"][row], encoding.sequence_ids(row)
    context = [token for token, sequence in enumerate(sequences) if sequence == 1]
    offsets = np.array([encoding["offset_mapping"][row][token] for token in context]).reshape(-1, 2)
    nowhere = ids.index(tokenizer.cls_token_id) if tokenizer.cls_token_id in ids else 0
    return Window(first=context[0] if context else 0, offsets=offsets, nowhere=nowhere)


def _nowhere(output: Any, batch: Batch) -> list[float]:
    """The sum of the start and end logits at the position that means "no answer", one number per row."""
    places = (batch.labels[:, 2] + batch.starts())[:, None]
    sums = sum(logits.double().gather(1, places) for logits in _logits(output, batch))
    assert isinstance(sums, Tensor)
    totals: list[float] = sums[:, 0].tolist()
    return totals


def _logits(output: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits of starts and ends, shape (rows, tokens) each, with padding masked out of the softmax."""
    padding = batch.inputs["attention_mask"] == 0
    start, end = output.start_logits, output.end_logits
    lowest = torch.finfo(start.dtype).min
    return start.masked_fill(padding, lowest), end.masked_fill(padding, lowest)


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

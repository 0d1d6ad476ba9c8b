"""Find the answer to a question in a text."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForQuestionAnswering

from benchmarks.metrics import answer_scores
from benchmarks.rows import QuestionRow
from benchmarks.tasks.batches import in_batches

_STRIDE = 64
"""Tokens that a window of a long context shares with the next."""
_LONGEST_ANSWER = 30
"""Tokens; longer spans are not considered. The usual setting for SQuAD."""
_CONTEXT = 1


class Answering:
    """The span whose first and last token have the largest sum of logits; long contexts are read in windows.

    A window without the answer points to its first token.
    """

    name = "question-answering"
    form = QuestionRow
    auto_class = AutoModelForQuestionAnswering

    def head(self, rows: Sequence[QuestionRow]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        return {}

    def length(self, row: QuestionRow) -> int:
        return len(row.question) + len(row.context)

    def encode(self, tokenizer: Any, rows: Sequence[QuestionRow], config: Any, max_length: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        inputs, owners = _windows(tokenizer, rows, max_length)
        offsets = inputs.pop("offset_mapping")
        targets = [
            _target(rows[owner], inputs.sequence_ids(window), offsets[window]) for window, owner in enumerate(owners)
        ]
        starts, ends = zip(*targets, strict=True)
        return {**inputs, "start_positions": torch.tensor(starts), "end_positions": torch.tensor(ends)}

    def figures(self, model: Any, tokenizer: Any, rows: Sequence[QuestionRow], max_length: int) -> dict[str, float]:
        scores = [
            answer_scores(answer, row.answers["text"])
            for row, answer in zip(rows, answers(model, tokenizer, rows, max_length), strict=True)
        ]
        exact, overlap = zip(*scores, strict=True)
        return {"exact_match": sum(exact) / len(rows), "f1": sum(overlap) / len(rows)}


@torch.inference_mode()
def answers(model: Any, tokenizer: Any, rows: Sequence[QuestionRow], max_length: int) -> list[str]:
    """The best span of each row's context, over all its windows."""
    found: list[str] = []
    for batch in in_batches(rows):
        inputs, owners = _windows(tokenizer, batch, max_length)
        offsets = inputs.pop("offset_mapping")
        sides = [inputs.sequence_ids(window) for window in range(len(owners))]
        given = model(**inputs)
        spans = _best_spans(given.start_logits, given.end_logits, sides)
        for number, row in enumerate(batch):
            windows = [window for window, owner in enumerate(owners) if owner == number]
            best = max(windows, key=lambda window: spans[window][0])
            _, first, last = spans[best]
            found.append(row.context[int(offsets[best, first, 0]) : int(offsets[best, last, 1])])
    return found


def _windows(tokenizer: Any, rows: Sequence[QuestionRow], max_length: int) -> tuple[Any, list[int]]:
    """The encoded windows, and for each the row it is of."""
    inputs = tokenizer(
        [row.question for row in rows],
        [row.context for row in rows],
        truncation="only_second",
        max_length=max_length,
        stride=_STRIDE,
        padding=True,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_tensors="pt",
    )
    return inputs, inputs.pop("overflow_to_sample_mapping").tolist()


def _target(row: QuestionRow, sides: Sequence[int | None], offsets: Tensor) -> tuple[int, int]:
    """First and last token of the answer in a window; twice 0 where it is not inside."""
    start = row.answers["answer_start"][0]
    stop = start + len(row.answers["text"][0])
    inside = [
        place
        for place, (low, high) in enumerate(offsets.tolist())
        if sides[place] == _CONTEXT and low < stop and high > start
    ]
    if not inside or offsets[inside[0], 0] > start or offsets[inside[-1], 1] < stop:
        return 0, 0
    return inside[0], inside[-1]


def _best_spans(starts: Tensor, ends: Tensor, sides: Sequence[Sequence[int | None]]) -> list[tuple[float, int, int]]:
    """For each window the score, the first and the last token of its best span inside the context."""
    context = torch.tensor([[side == _CONTEXT for side in window] for window in sides])
    low = torch.finfo(starts.dtype).min / 4  # the sum of two stays finite
    sums = starts.masked_fill(~context, low)[:, :, None] + ends.masked_fill(~context, low)[:, None, :]
    allowed = torch.ones_like(sums[0], dtype=torch.bool).triu() & ~torch.ones_like(sums[0], dtype=torch.bool).triu(
        _LONGEST_ANSWER
    )
    scores, places = sums.masked_fill(~allowed, 2 * low).flatten(1).max(-1)
    width = sums.shape[-1]
    return [
        (score, place // width, place % width) for score, place in zip(scores.tolist(), places.tolist(), strict=True)
    ]

"""Find the answer to a question in a text."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForQuestionAnswering

from benchmarks.rows import QuestionRow

_STRIDE = 64
"""Tokens that a window of a long context shares with the next."""
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

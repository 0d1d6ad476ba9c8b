"""Extractive question answering: which part of a context answers a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch
from axformer.data.encoding import Encoded, require_fast
from axformer.data.rows import Rows
from axformer.tasks.guess import Guess, mean_by_sample
from axformer.tasks.spans import N_BEST, SpanScores, Window, best_span
from axformer.tasks.squad import exact_match, word_f1
from axformer.tasks.standing import Standing

OVERLAP = 0.25
"""The share of a window that the next one repeats, so that an answer at its edge is whole in one of them; of BERT's 512
tokens it is 128, the stride of BERT's SQuAD program."""


@dataclass(frozen=True)
class Reading:
    """What turns places of tokens into answers."""

    windows: list[Window]
    """One a model row."""
    contexts: list[str]
    """One a sample."""
    answers: list[list[str]]
    """The right answers of each sample."""


class QuestionAnswering:
    """A span a question; the loss of a window is the mean of the cross-entropies of start and end.

    A context longer than the model takes goes through it in windows that overlap. A window without the answer has the
    classification token for its label, and a question's loss is the mean over its windows.
    """

    name = "question_answering"
    pooled = False
    pipeline = None  # transformers 5 has none any more

    def encode(
        self,
        rows: Rows,
        tokenizer: Any,
        config: Any,  # noqa: ARG002 - the protocol's signature
        max_length: int | None,
        max_tokens: int | None,
    ) -> Encoded:
        require_fast(tokenizer, "which characters a token stands for")
        contexts, answers = rows.texts("context"), right_answers(rows)
        encoding = _windows(rows, tokenizer, max_length or max_tokens)
        features = dict(encoding)
        del features["offset_mapping"]
        sample_of_row = features.pop("overflow_to_sample_mapping", list(range(len(rows))))
        windows = [_window(encoding, place, tokenizer) for place in range(len(sample_of_row))]
        labels = []
        for window, sample in zip(windows, sample_of_row, strict=True):
            start, text = answers[sample][0]
            labels.append(window.locate(start, start + len(text)))
        texts = [[text for _, text in pairs] for pairs in answers]
        return Encoded(features, labels, list(sample_of_row), reading=Reading(windows, contexts, texts))

    def losses(self, output: Any, batch: Batch) -> Tensor:
        places = batch.labels + batch.starts()[:, None]
        start, end = _logits(output, batch)
        losses = [
            functional.cross_entropy(logits, places[:, side], reduction="none")
            for side, logits in enumerate((start, end))
        ]
        return (losses[0] + losses[1]) / 2

    def answers(self, output: Any, batch: Batch) -> list[SpanScores]:
        best = min(N_BEST, batch.tokens)
        columns: list[np.ndarray] = []
        for logits in _logits(output, batch):
            scores, places = torch.topk(logits, best)
            columns += [(places - batch.starts()[:, None]).cpu().numpy(), scores.double().cpu().numpy()]
        return [SpanScores(*row) for row in zip(*columns, strict=True)]

    def statistics(self, answers: Sequence[SpanScores], encoded: Encoded) -> np.ndarray:
        """Exact match and F1, between 0 and 1."""
        reading: Reading = encoded.reading
        seen: list[list[tuple[Window, SpanScores]]] = [[] for _ in range(encoded.samples)]
        for sample, window, scores in zip(encoded.sample_of_row, reading.windows, answers, strict=True):
            seen[sample].append((window, scores))
        rows = []
        for windows, context, expected in zip(seen, reading.contexts, reading.answers, strict=True):
            start, end = best_span(windows)
            rows.append((exact_match(context[start:end], expected), word_f1(context[start:end], expected)))
        return np.array(rows)

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        exact, overlap = statistics.mean(axis=0).tolist()
        return {"exact_match": exact, "f1": overlap}

    def correct(self, statistics: np.ndarray) -> np.ndarray:
        """A sample is right where the answer matches exactly."""
        right: np.ndarray = statistics[:, 0] == 1.0
        return right

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        """Any token of a window is as likely to begin the answer, and to end it, as any other."""
        rows = np.log(np.array(encoded.lengths))
        return Guess(losses=mean_by_sample(rows, np.array(encoded.sample_of_row), encoded.samples))

    def standing(self, answers: Sequence[SpanScores], encoded: Encoded, config: Any) -> Standing:  # noqa: ARG002
        return Standing(
            "whether question and context are swapped, whether answer_start counts characters of the context, and whether the "
            "model was fine-tuned for question answering"
        )


def right_answers(rows: Rows) -> list[list[tuple[int, str]]]:
    """The right answers of each question: where in the context they begin, and what they say.

    Raises:
        DataError: a question has none, or one is not where it is said to be.
    """
    found = []
    for row, (record, context) in enumerate(zip(rows.records("answers"), rows.texts("context"), strict=True), start=1):
        texts, starts = record.get("text"), record.get("answer_start")
        if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
            raise rows.error(
                row, f"answers {record!r} are not {{'text': [...], 'answer_start': [...]}} of equal lengths"
            )
        if not texts:
            raise rows.error(row, "it has no answer; questions without one are not supported, leave them out")
        for text, start in zip(texts, starts, strict=True):
            if not isinstance(text, str) or not text.strip() or not isinstance(start, int) or start < 0:
                raise rows.error(row, f"answer {text!r} at {start!r} is not a text with the character where it begins")
            there = context[start : start + len(text)]
            if there != text:
                raise rows.error(row, f"answer {text!r} is not at character {start} of the context, {there!r} is")
        found.append(list(zip(starts, texts, strict=True)))
    return found


def _windows(rows: Rows, tokenizer: Any, length: int | None) -> Any:
    """The tokenizer's encoding of all questions with their contexts, in windows of at most ``length`` tokens."""
    questions, contexts = rows.texts("question"), rows.texts("context")
    options: dict[str, Any] = {"return_offsets_mapping": True, "return_attention_mask": True}
    if length is None:
        return tokenizer(questions, contexts, truncation=False, verbose=False, **options)
    overlap = int(length * OVERLAP)
    room = length - tokenizer.num_special_tokens_to_add(pair=True)
    question_ids = tokenizer(questions, add_special_tokens=False, verbose=False)["input_ids"]
    for row, ids in enumerate(question_ids, start=1):
        if room - len(ids) <= overlap:
            raise rows.error(
                row,
                f"the question has {len(ids)} tokens, which leaves {max(0, room - len(ids))} of {length} for the context, "
                f"and windows overlap by {overlap}; shorten it, or raise max_length",
            )
    return tokenizer(
        *(questions, contexts),
        **{"truncation": "only_second", "max_length": length, "stride": overlap},
        **{"return_overflowing_tokens": True, **options},
    )


def _window(encoding: Any, place: int, tokenizer: Any) -> Window:
    ids, sequences = encoding["input_ids"][place], encoding.sequence_ids(place)
    context = [token for token, sequence in enumerate(sequences) if sequence == 1]
    offsets = np.array([encoding["offset_mapping"][place][token] for token in context]).reshape(-1, 2)
    nowhere = ids.index(tokenizer.cls_token_id) if tokenizer.cls_token_id in ids else 0
    return Window(first=context[0] if context else 0, offsets=offsets, nowhere=nowhere)


def _logits(output: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits of starts and ends, shape (rows, tokens) each; padding can be neither, so it has no share of the probability."""
    padding = batch.inputs["attention_mask"] == 0
    start, end = output.start_logits, output.end_logits
    lowest = torch.finfo(start.dtype).min
    return start.masked_fill(padding, lowest), end.masked_fill(padding, lowest)

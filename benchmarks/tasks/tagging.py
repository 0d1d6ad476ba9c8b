"""One tag a word."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForTokenClassification

from benchmarks.metrics import f1
from benchmarks.rows import TagsRow
from benchmarks.tasks.batches import outputs
from benchmarks.tasks.classification import named_labels

_NO_LABEL = -100
Span = tuple[int, int, str]


class Tagging:
    """The tag with the largest logit at the first piece of a word; further pieces bear no label."""

    name = "tagging"
    form = TagsRow
    auto_class = AutoModelForTokenClassification

    def head(self, rows: Sequence[TagsRow]) -> dict[str, Any]:
        return named_labels(tag for row in rows for tag in row.tags)

    def length(self, row: TagsRow) -> int:
        return sum(len(token) for token in row.tokens)

    def encode(self, tokenizer: Any, rows: Sequence[TagsRow], config: Any, max_length: int) -> Mapping[str, Tensor]:
        inputs = tokenizer(
            [row.tokens for row in rows],
            is_split_into_words=True,
            truncation=True,
            max_length=max_length,
            padding=True,
            return_tensors="pt",
        )
        labels = torch.full_like(inputs["input_ids"], _NO_LABEL)
        for place, row in enumerate(rows):
            seen: set[int] = set()
            for piece, word in enumerate(inputs.word_ids(place)):
                if word is not None and word not in seen:
                    seen.add(word)
                    labels[place, piece] = config.label2id[row.tags[word]]
        return {**inputs, "labels": labels}

    def figures(self, model: Any, tokenizer: Any, rows: Sequence[TagsRow], max_length: int) -> dict[str, float]:
        predicted: list[list[str]] = []
        expected: list[list[str]] = []
        names = model.config.id2label
        for given, inputs in outputs(
            model, rows, lambda batch: self.encode(tokenizer, batch, model.config, max_length)
        ):
            for guess, label in zip(given.logits.argmax(-1), inputs["labels"], strict=True):
                predicted.append([names[int(index)] for index in guess[label != _NO_LABEL]])
                expected.append([names[int(index)] for index in label[label != _NO_LABEL]])
        return {"accuracy": _accuracy(predicted, expected), **_span_f1(predicted, expected)}


def _accuracy(predicted: list[list[str]], expected: list[list[str]]) -> float:
    pairs = [pair for rows in zip(predicted, expected, strict=True) for pair in zip(*rows, strict=True)]
    return sum(guess == tag for guess, tag in pairs) / len(pairs)


def _span_f1(predicted: list[list[str]], expected: list[list[str]]) -> dict[str, float]:
    """F1 of whole spans, where the tags mark spans."""
    if not any(tag.startswith("B-") for tags in expected for tag in tags):
        return {}
    found, true = ([spans(tags) for tags in side] for side in (predicted, expected))
    right = sum(len(one & other) for one, other in zip(found, true, strict=True))
    return {"f1": f1(right, sum(map(len, found)), sum(map(len, true)))}


def spans(tags: Iterable[str]) -> set[Span]:
    """The spans that IOB2 tags mark: first word, word after the last, kind.

    As the CoNLL scorer has it, an ``I-`` that continues nothing of its kind begins a span.
    """
    found: list[Span] = []
    start, kind = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        if kind and (prefix != "I" or name != kind):
            found.append((start, place, kind))
            kind = ""
        if prefix in {"B", "I"} and not kind:
            start, kind = place, name
    return set(found)

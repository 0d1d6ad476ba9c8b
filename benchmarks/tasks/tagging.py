"""One tag a word."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForTokenClassification

from benchmarks.rows import TagsRow
from benchmarks.tasks.classification import named_labels

_NO_LABEL = -100


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

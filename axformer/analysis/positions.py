"""The positions of a model's inputs whose hidden states represent the data.

A model that reads one position of a sequence is represented there, and one that pools several by their mean; a tagger at the
last sub-word of each tagged word (Dalvi et al., 2020, section 3.1); any other at all tokens that are not special.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from axformer.config import RunConfig
from axformer.data.batches import Batch
from axformer.data.encoding import UNLABELLED, TokenLimits, tokenize
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.tail import read_positions
from axformer.tasks.token_classification import TokenClassification


class Positions(Protocol):
    """Where hidden states are read."""

    @property
    def name(self) -> str:
        """What is read, in words."""

    def counts(self, batch: Batch) -> list[int]:
        """How many positions each row of a batch has."""

    def read(self, batch: Batch, hidden: Tensor) -> Tensor:
        """The states at the positions of a batch, row after row: from (sequences, tokens, hidden) to (positions, hidden)."""


def positions_of(checkpoint: Checkpoint, data: DataSet, config: RunConfig) -> Positions:
    """The positions at which a checkpoint's task is represented.

    Args:
        checkpoint: the model with its task.
        data: what will be read.
        config: how the data was read.
    """
    if checkpoint.task.name == TokenClassification.name:
        return LastSubwords(_last_subwords(checkpoint, data, config))
    if checkpoint.task.pooled:
        return ReadPositions(checkpoint)
    return EveryToken(torch.tensor(sorted(checkpoint.tokenizer.all_special_ids)))


@dataclass(frozen=True)
class ReadPositions:
    """The position that the head reads, or the mean over all tokens if it reads several."""

    checkpoint: Checkpoint
    name: str = "the position that the head reads"

    def counts(self, batch: Batch) -> list[int]:
        return [batch.inputs["input_ids"][0].numel() // batch.tokens] * len(batch.rows)

    def read(self, batch: Batch, hidden: Tensor) -> Tensor:
        position = read_positions(self.checkpoint.model, self.checkpoint.architecture, batch)
        if position is not None:
            return hidden[torch.arange(len(hidden), device=hidden.device), position.tokens]
        real = batch.inputs["attention_mask"].flatten(end_dim=-2).to(hidden.dtype)
        return torch.einsum("st,sth->sh", real, hidden) / real.sum(dim=1, keepdim=True)


@dataclass(frozen=True)
class LastSubwords:
    """The last sub-word of each tagged word."""

    places: Sequence[Sequence[int]]
    """Their places in each model row, without padding."""
    name: str = "the last sub-word of each tagged word"

    def counts(self, batch: Batch) -> list[int]:
        return [len(self.places[row]) for row in batch.rows.tolist()]

    def read(self, batch: Batch, hidden: Tensor) -> Tensor:
        starts = batch.starts().tolist()
        pairs = [
            (index, start + place)
            for index, (row, start) in enumerate(zip(batch.rows.tolist(), starts, strict=True))
            for place in self.places[row]
        ]
        rows, tokens = torch.tensor(pairs, device=hidden.device).T
        return hidden[rows, tokens]


@dataclass(frozen=True)
class EveryToken:
    """Every token that is neither padding nor special."""

    special: Tensor
    """The ids of special tokens."""
    name: str = "every token that is not special"

    def counts(self, batch: Batch) -> list[int]:
        counts: list[int] = self._mask(batch).flatten(start_dim=1).sum(dim=1).tolist()
        return counts

    def read(self, batch: Batch, hidden: Tensor) -> Tensor:
        return hidden[self._mask(batch).flatten(end_dim=-2)]

    def _mask(self, batch: Batch) -> Tensor:
        ids = batch.inputs["input_ids"]
        return batch.inputs["attention_mask"].bool() & ~torch.isin(ids, self.special.to(ids.device))


def _last_subwords(checkpoint: Checkpoint, data: DataSet, config: RunConfig) -> list[list[int]]:
    words = data.rows.text_lists("tokens")
    limits = TokenLimits(config.max_length, checkpoint.architecture.max_tokens(checkpoint.model.config))
    encoding, _ = tokenize(data.rows, checkpoint.tokenizer, words, None, limits, is_split_into_words=True)
    places = []
    for row, labels in enumerate(data.samples.encoded.labels):
        word_ids = encoding.word_ids(row)
        last = {word: place for place, word in enumerate(word_ids)}
        places.append([last[word_ids[place]] for place, label in enumerate(labels) if label != UNLABELLED])
    return places

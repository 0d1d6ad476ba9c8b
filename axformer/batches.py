"""Tokenised samples, sorted by length and batched by tokens: padding is not work."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axformer.data import Rows
from axformer.errors import DataError

IGNORED_BY_MODELS = ("special_tokens_mask", "length", "overflow_to_sample_mapping")


@dataclass(frozen=True)
class Batch:
    """Samples that go through the model together."""

    rows: Tensor
    """Their places in the data set, shape (batch,)."""
    inputs: dict[str, Tensor]
    """What the model takes, each of shape (batch, tokens), padded to the longest."""

    labels: Tensor

    @property
    def tokens(self) -> int:
        """Length of the longest sample, and so of all."""
        return int(self.inputs["input_ids"].shape[1])


@dataclass(frozen=True)
class Samples:
    """A tokenised data set on its device."""

    batches: tuple[Batch, ...]
    labels: Tensor
    """In the order of the file, shape (samples, ...)."""
    lengths: Tensor
    """Tokens of each sample without padding, in the order of the file, shape (samples,)."""
    cut: int
    """Samples that were longer than ``max_length`` and lost their end."""

    def __len__(self) -> int:
        return len(self.labels)

    def per_sample(self, losses):
        return losses


def encode(
    rows: Rows,
    labels: Tensor,
    tokenizer: Any,
    *,
    max_length: int | None,
    max_tokens: int,
    batch_tokens: int,
    device: str,
) -> Samples:
    """Tokenise and batch a data set.

    Args:
        max_length: longer samples are cut to this many tokens; null cuts none.
        max_tokens: the longest sample that the model takes.
        batch_tokens: tokens of a batch, padding included; a longer sample is a batch of its own.

    Raises:
        DataError: a sample is longer than the model takes, and ``max_length`` does not say to cut it.
    """
    encoded = tokenizer(rows.text, rows.text_pair, truncation=False, verbose=False)
    lengths = torch.tensor([len(ids) for ids in encoded["input_ids"]])
    longest = int(lengths.argmax())
    if max_length is None and max_tokens is not None and lengths[longest] > max_tokens:
        raise DataError(
            f"data file '{rows.source}', row {longest + 1} has {lengths[longest]} tokens, the model takes {max_tokens}; "
            f"shorten it, or set max_length={max_tokens} to cut longer rows"
        )
    cut = 0
    if max_length is not None:
        cut = int((lengths > max_length).sum())
        encoded = tokenizer(rows.text, rows.text_pair, truncation=True, max_length=max_length)
        lengths = torch.tensor([len(ids) for ids in encoded["input_ids"]])
    features = {name: values for name, values in encoded.items() if name not in IGNORED_BY_MODELS}
    batches = tuple(
        Batch(torch.tensor(places).to(device), _pad(features, places, tokenizer, device), labels[places].to(device))
        for places in _groups(lengths, batch_tokens)
    )
    return Samples(batches=batches, labels=labels.to(device), lengths=lengths.to(device), cut=cut)


def _groups(lengths: Tensor, batch_tokens: int) -> Iterator[list[int]]:
    """Places of samples, shortest first, in groups of at most ``batch_tokens`` tokens."""
    group: list[int] = []
    for place in torch.argsort(lengths, stable=True).tolist():
        if group and (len(group) + 1) * int(lengths[place]) > batch_tokens:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _pad(features: dict[str, list[Any]], places: Sequence[int], tokenizer: Any, device: str) -> dict[str, Tensor]:
    chosen = {name: [values[place] for place in places] for name, values in features.items()}
    padded = tokenizer.pad(chosen, padding="longest", return_tensors="pt", verbose=False)
    return {name: values.to(device) for name, values in padded.items()}

"""Model rows, sorted by length and batched by tokens: padding is not work."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axformer.data.encoding import UNLABELLED, Encoded
from axformer.data.padding import Padding, padded_row


@dataclass(frozen=True)
class Batch:
    """Model rows that go through the model together."""

    rows: Tensor
    """Their places in the data set, shape (rows,)."""
    inputs: dict[str, Tensor]
    """What the model takes, each of shape (rows, tokens) or (rows, choices, tokens), padded to the longest."""
    labels: Tensor
    """Shape (rows,), (rows, numbers), or (rows, tokens) where labels are one a token."""

    @property
    def tokens(self) -> int:
        """Length of the longest row, and so of all."""
        return int(self.inputs["input_ids"].shape[-1])

    @property
    def size(self) -> int:
        """Tokens of all rows together, padding included."""
        return self.inputs["input_ids"].numel()

    def starts(self) -> Tensor:
        """Where each row's own tokens begin: 0, or behind its padding where the tokenizer pads on the left; shape (rows,)."""
        return self.inputs["attention_mask"].int().argmax(dim=-1)


@dataclass(frozen=True)
class Samples:
    """A tokenised data set on its device."""

    batches: tuple[Batch, ...]
    encoded: Encoded
    sample_of_row: Tensor
    """The place of each model row's sample, shape (model rows,), on the CPU."""
    lengths: Tensor
    """Tokens of each model row without padding, in the order of the file, shape (model rows,)."""

    def __len__(self) -> int:
        return self.encoded.samples

    @property
    def cut(self) -> int:
        """Samples that were longer than ``max_length`` and lost their end."""
        return self.encoded.cut

    @property
    def one_row_each(self) -> bool:
        """Every sample is one model row."""
        return len(self.sample_of_row) == len(self)

    def per_sample(self, row_losses: Tensor) -> Tensor:
        """The loss of each sample: the mean over its model rows; shapes (model rows,) and (samples,), on the CPU."""
        if self.one_row_each:
            return row_losses
        sums = torch.zeros(len(self), dtype=torch.float64).index_add_(0, self.sample_of_row, row_losses.double())
        return (sums / torch.bincount(self.sample_of_row)).to(row_losses.dtype)


def batched(encoded: Encoded, tokenizer: Any, *, batch_tokens: int, device: str) -> Samples:
    """A data set in batches.

    Args:
        batch_tokens: tokens of a batch, padding included; a longer model row is a batch of its own.
    """
    lengths = torch.tensor(encoded.lengths)
    groups = _groups(lengths, 1 if encoded.padding.alone else batch_tokens // encoded.choices)
    return Samples(
        batches=tuple(assemble(encoded, places, tokenizer, device) for places in groups),
        encoded=encoded,
        sample_of_row=torch.tensor(encoded.sample_of_row),
        lengths=lengths.to(device),
    )


def assemble(encoded: Encoded, places: Sequence[int], tokenizer: Any, device: str) -> Batch:
    """One batch of the model rows at some places."""
    chosen = {name: [values[row] for row in places] for name, values in encoded.features.items()}
    inputs = padded(chosen, encoded.choices, tokenizer, encoded.padding)
    labels = [encoded.labels[row] for row in places]
    if encoded.per_token:
        tokens, side = inputs["input_ids"].shape[-1], encoded.padding.side or tokenizer.padding_side
        labels = [padded_row(row, UNLABELLED, tokens, side) for row in labels]
    return Batch(
        rows=torch.tensor(places).to(device),
        inputs={name: values.to(device) for name, values in inputs.items()},
        labels=torch.tensor(labels).to(device),
    )


def _groups(lengths: Tensor, batch_tokens: int) -> Iterator[list[int]]:
    """Places of model rows, shortest first, in groups of at most ``batch_tokens`` tokens."""
    group: list[int] = []
    for row in torch.argsort(lengths, stable=True).tolist():
        if group and (len(group) + 1) * int(lengths[row]) > batch_tokens:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def padded(features: dict[str, list[Any]], choices: int, tokenizer: Any, padding: Padding) -> dict[str, Tensor]:
    """Model rows as one batch, of shape (rows, tokens) or (rows, choices, tokens), padded to the longest."""
    if choices > 1:
        features = {name: [ids for row in rows for ids in row] for name, rows in features.items()}
    if padding.filler is None:
        filled = tokenizer.pad(features, padding="longest", return_tensors="pt", verbose=False)
    else:
        filled = padding.fill(features)
    return {name: ids.unflatten(0, (-1, choices)) if choices > 1 else ids for name, ids in filled.items()}

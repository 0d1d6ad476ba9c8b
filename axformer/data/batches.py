"""Batch model rows, sorted by length and limited by tokens, to avoid computing padding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from axformer.data.encoding import UNLABELLED, Encoded, bytes_of, firsts
from axformer.data.padding import Padding, padded_row


@dataclass(frozen=True)
class Batch:
    """Model rows of one forward pass."""

    rows: Tensor
    """Their indices in the data set, shape (rows,)."""
    inputs: dict[str, Tensor]
    """The model's inputs, each of shape (rows, tokens) or (rows, choices, tokens), padded to the longest."""
    labels: Tensor
    """Shape (rows,), (rows, numbers), or (rows, tokens) for token labels."""

    @property
    def tokens(self) -> int:
        """Padded length of the rows."""
        return int(self.inputs["input_ids"].shape[-1])

    @property
    def size(self) -> int:
        """Total number of tokens, including padding."""
        return self.inputs["input_ids"].numel()

    def to(self, device: Any) -> "Batch":
        """The batch on a device; itself if it is there."""
        if self.rows.device == torch.device(device):
            return self
        inputs = {name: values.to(device) for name, values in self.inputs.items()}
        return Batch(self.rows.to(device), inputs, self.labels.to(device))

    def starts(self) -> Tensor:
        """Where each row's own tokens begin, shape (rows,): 0, or after the padding if it is on the left."""
        return self.inputs["attention_mask"].int().argmax(dim=-1)


@dataclass(frozen=True)
class Samples:
    """A tokenized data set on its device."""

    batches: tuple[Batch, ...]
    encoded: Encoded
    sample_of_row: Tensor
    """The sample of each model row, shape (model rows,), on the CPU."""
    lengths: Tensor
    """Tokens of each model row without padding, in the order of the file, shape (model rows,)."""

    def __len__(self) -> int:
        return self.encoded.samples

    @property
    def cut(self) -> int:
        """Number of samples that were cut at ``max_length``."""
        return self.encoded.cut

    @property
    def one_row_each(self) -> bool:
        """Whether every sample is one model row."""
        return len(self.sample_of_row) == len(self)

    @cached_property
    def inputs(self) -> Tensor:
        """The number of each sample's input, from 0 in the order of the data; copies have the same. Shape (samples,)."""
        number = {first: place for place, first in enumerate(dict.fromkeys(self.encoded.inputs))}
        return torch.tensor([number[first] for first in self.encoded.inputs])

    @cached_property
    def voters(self) -> Tensor:
        """Which samples count where rows are counted, bool, shape (samples,): one for each different input.

        Tests and majorities take samples for independent, and copies are not: they add weight and no knowledge. Of the copies
        of an input one is drawn, by a fixed seed and without a look at labels or models. So the votes are a sample of the
        inputs, each with one of its own labels, and a test that is valid on independent rows is valid on them. Where copies
        have different labels, the drawn one speaks for all.
        """
        drawn: dict[int, int] = {}
        for place in torch.randperm(len(self), generator=torch.Generator().manual_seed(0)).tolist():
            drawn.setdefault(self.encoded.inputs[place], place)
        return torch.zeros(len(self), dtype=torch.bool).index_fill(0, torch.tensor(list(drawn.values())), True)

    @cached_property
    def first_rows(self) -> Tensor:
        """The first model row with the same token ids as each model row, shape (model rows,), on the CPU."""
        return torch.tensor(firsts(map(bytes_of, self.encoded.features["input_ids"])))

    @cached_property
    def longest(self) -> Tensor:
        """Tokens of each sample's longest model row, shape (samples,), on the CPU."""
        return torch.zeros(len(self), dtype=torch.int64).scatter_reduce(
            0, self.sample_of_row, self.lengths.cpu(), "amax"
        )

    def per_sample(self, row_losses: Tensor) -> Tensor:
        """Average losses over each sample's model rows; from shape (model rows,) to (samples,), on the CPU."""
        if self.one_row_each:
            return row_losses
        sums = torch.zeros(len(self), dtype=torch.float64).index_add_(0, self.sample_of_row, row_losses.double())
        return (sums / torch.bincount(self.sample_of_row)).to(row_losses.dtype)


def batched(encoded: Encoded, tokenizer: Any, *, batch_tokens: int, device: str) -> Samples:
    """Split a data set into batches.

    Args:
        batch_tokens: most tokens of a batch including padding; a longer model row is a separate batch.
    """
    lengths = torch.tensor(encoded.lengths)
    most = 1 if encoded.padding.alone else batch_tokens // encoded.choices
    groups = _groups(lengths, most, encoded.padding.apart or 0)
    return Samples(
        batches=tuple(assemble(encoded, places, tokenizer, device) for places in groups),
        encoded=encoded,
        sample_of_row=torch.tensor(encoded.sample_of_row),
        lengths=lengths.to(device),
    )


def batches_of(samples: Samples, rows: Sequence[int], tokenizer: Any) -> list[Batch]:
    """Some of the model rows in batches as large as those of all."""
    encoded, lengths = samples.encoded, samples.lengths.cpu()
    most = 1 if encoded.padding.alone else max(len(batch.rows) * batch.tokens for batch in samples.batches)
    groups = _groups(lengths[list(rows)], most, encoded.padding.apart or 0)
    device = str(samples.lengths.device)
    return [assemble(encoded, [rows[place] for place in group], tokenizer, device) for group in groups]


def assemble(encoded: Encoded, places: Sequence[int], tokenizer: Any, device: str) -> Batch:
    """Make a batch of some model rows."""
    chosen = {name: [values[row] for row in places] for name, values in encoded.features.items()}
    inputs = padded(chosen, encoded.choices, tokenizer, encoded.padding)
    labels = [encoded.labels[row] for row in places]
    if encoded.per_token:
        tokens, side = inputs["input_ids"].shape[-1], encoded.padding.side or tokenizer.padding_side
        labels = [padded_row(row, UNLABELLED, tokens, side) for row in labels]
    return Batch(
        rows=torch.tensor(places).to(device),
        inputs={name: values.to(device) for name, values in inputs.items()},
        labels=(torch.stack(labels) if isinstance(labels[0], Tensor) else torch.tensor(labels)).to(device),
    )


def _groups(lengths: Tensor, batch_tokens: int, apart: int) -> Iterator[list[int]]:
    """Group the indices of model rows, shortest first, in groups of at most ``batch_tokens`` tokens, and either none or all of
    them with more than ``apart``."""
    group: list[int] = []
    for row in torch.argsort(lengths, stable=True).tolist():
        length = int(lengths[row])
        if group and ((len(group) + 1) * length > batch_tokens or lengths[group[-1]] <= apart < length):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def padded(features: dict[str, list[Any]], choices: int, tokenizer: Any, padding: Padding) -> dict[str, Tensor]:
    """Pad model rows to one batch of shape (rows, tokens) or (rows, choices, tokens)."""
    if choices > 1:
        features = {name: [ids for row in rows for ids in row] for name, rows in features.items()}
    if padding.filler is None:
        filled = tokenizer.pad(features, padding="longest", return_tensors="pt", verbose=False)
    else:
        filled = padding.fill(features)
    return {name: ids.unflatten(0, (-1, choices)) if choices > 1 else ids for name, ids in filled.items()}

"""A data set as token ids: the model's inputs, and the sample that each of them belongs to."""

import hashlib
from array import array
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from transformers.tokenization_utils_base import VERY_LARGE_INTEGER

from axformer.data.padding import BY_TOKENIZER, Padding
from axformer.data.rows import Rows
from axformer.errors import CheckpointError
from axformer.pulse import beat

UNLABELLED = -100
"""The label of an ignored token, as in transformers."""
_PART = 1000
"""Inputs that are tokenized at a time: a second of work for ordinary texts."""
_INPUT_OF_WINDOW = "overflow_to_sample_mapping"
"""What of an encoding counts its inputs, where one of them has several windows."""


@dataclass(frozen=True)
class TokenLimits:
    """How many tokens an input may have."""

    max_length: int | None = None
    """Longer inputs are cut to this many; None cuts none."""
    max_tokens: int | None = None
    """The longest input that the model takes; None if it takes any."""
    why: str = ""
    """Why it takes no longer ones, in a message after their number."""


@dataclass(frozen=True)
class Encoded:
    """Model rows in the order of the file. A *sample* is what the accept rule counts; a long one may take several rows."""

    features: dict[str, list[Any]]
    """The model's inputs: one list of ids per model row, or for multiple choice one per choice."""
    labels: list[Any]
    """One label per model row: a number, a fixed count of numbers, or with ``per_token`` one per token."""
    sample_of_row: list[int]
    """The sample of each model row, in non-decreasing order without gaps."""
    cut: int = 0
    """Number of samples that were cut at ``max_length``."""
    per_token: bool = False
    """Whether there is a label for each token, padded with the tokens."""
    reading: Any = None
    """Data that the task needs to decode the model's answers."""
    padding: Padding = BY_TOKENIZER
    """How model rows share a batch."""
    labels_as: str | None = None
    """How the column of labels is read, in words; None if there was no choice."""
    alike: str | None = None
    """The common label in words if all labels are equal, so that they cannot decide anything; otherwise None."""
    notes: tuple[str, ...] = ()
    """What the user should know about how the rows were read."""
    kept: list[int] | None = None
    """Indices of the rows that became samples; None if all did."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.sample_of_row[-1] + 1

    @property
    def choices(self) -> int:
        """Sequences per model row: 1 except for multiple choice."""
        first = self.features["input_ids"][0]
        return len(first) if isinstance(first[0], list) else 1

    @property
    def lengths(self) -> list[int]:
        """Tokens of each model row; for multiple choice, of its longest choice."""
        rows = self.features["input_ids"]
        return [max(map(len, row)) for row in rows] if self.choices > 1 else [len(row) for row in rows]

    @cached_property
    def keys(self) -> list[bytes]:
        """A digest of the input of each sample, over all of its model rows: copies of an input have the same."""
        digests = [hashlib.blake2b(digest_size=16) for _ in range(self.samples)]
        for sample, ids in zip(self.sample_of_row, self.features["input_ids"], strict=True):
            digests[sample].update(bytes_of(ids))
        return [digest.digest() for digest in digests]

    @cached_property
    def inputs(self) -> list[int]:
        """The first sample with the same input as each sample, in the order of the data; itself where none repeats."""
        return firsts(self.keys)

    def only(self, accepted: Sequence[str]) -> "Encoded":
        """The data set with only the features that a model accepts."""
        return replace(self, features={name: ids for name, ids in self.features.items() if name in accepted})


def firsts(keys: Iterable[Hashable]) -> list[int]:
    """The place of the first equal key, for each key."""
    seen: dict[Hashable, int] = {}
    return [seen.setdefault(key, place) for place, key in enumerate(keys)]


def bytes_of(ids: list[Any]) -> bytes:
    """Token ids of a model row, or of each of its choices, with the length before them."""
    if ids and isinstance(ids[0], list):
        return b"".join(map(bytes_of, ids))
    return array("q", [len(ids), *ids]).tobytes()


def one_row_a_sample(
    features: dict[str, list[Any]], labels: list[Any], cut: int, *, per_token: bool = False
) -> Encoded:
    """A data set in which every sample is one model row."""
    return Encoded(features, labels, list(range(len(labels))), cut, per_token)


def without_labels(features: dict[str, list[Any]], sample_of_row: list[int] | None = None, cut: int = 0) -> Encoded:
    """A data set that has no labels, or whose labels nobody looks at: it calibrates.

    Args:
        sample_of_row: the same; None where every sample goes through the model as one row.
    """
    rows = len(features["input_ids"])
    return Encoded(features, [UNLABELLED] * rows, list(range(rows)) if sample_of_row is None else sample_of_row, cut)


def most_tokens(tokenizer: Any, own: int | None, *limits: int | None) -> int | None:
    """The tokens at which a text is cut where one that is too long is not refused, the fewest of these; None if there is none.

    Args:
        own: what sentence-transformers says of a model; None if it leaves that to the tokenizer, as newer versions do.
        limits: others that hold.
    """
    said = (*limits, own or tokenizer.model_max_length)
    return min((one for one in said if one is not None and one < VERY_LARGE_INTEGER), default=None)


def tokenize(
    rows: Rows,
    tokenizer: Any,
    first: Sequence[Any],
    second: Sequence[Any] | None,
    limits: TokenLimits,
    *,
    sample_of_row: Sequence[int] | None = None,
    **options: Any,
) -> tuple[Any, int]:
    """Tokenize texts or pairs of texts.

    Args:
        sample_of_row: the row of the file that each input belongs to, from 0; None where each is a row of its own.

    Returns:
        The tokenizer's encoding, and the number of rows of the file that were cut.

    Raises:
        DataError: an input exceeds the model's limit without being cut at ``max_length``, or has no token.
    """
    max_length, max_tokens = limits.max_length, limits.max_tokens
    options |= {"return_attention_mask": True}
    rows_of = range(len(first)) if sample_of_row is None else sample_of_row
    encoding = in_parts(tokenizer, first, second, truncation=False, verbose=False, **options)
    lengths = [len(ids) for ids in encoding["input_ids"]]
    longest = max(range(len(lengths)), key=lengths.__getitem__)
    if max_length is None and max_tokens is not None and lengths[longest] > max_tokens:
        raise rows.error(
            rows_of[longest] + 1,
            f"it has {lengths[longest]} tokens, the model takes {max_tokens}{limits.why}; shorten it, or set "
            f"max_length={max_tokens} to cut longer rows",
        )
    if min(lengths) == 0:
        raise rows.error(rows_of[lengths.index(0)] + 1, "it is empty, the model needs at least one token")
    if max_length is None or max(lengths) <= max_length:
        return encoding, 0
    cut = {row for row, length in zip(rows_of, lengths, strict=True) if length > max_length}
    return in_parts(tokenizer, first, second, truncation=True, max_length=max_length, **options), len(cut)


def in_parts(
    tokenizer: Any, first: Sequence[Any], second: Sequence[Any] | None = None, *, part: int = _PART, **options: Any
) -> Any:
    """The encoding of many inputs, made part by part with a sign of life before each; the parts change nothing in it.

    Args:
        part: inputs of a part.
    """
    if len(first) <= part:
        beat()
        return tokenizer(first, second, **options)
    whole: dict[str, list[Any]] = {}
    encodings: list[Any] = []
    for start in range(0, len(first), part):
        beat()
        here = slice(start, start + part)
        made = tokenizer(first[here], None if second is None else second[here], **options)
        for name, values in made.items():
            shifted = [start + value for value in values] if name == _INPUT_OF_WINDOW else values
            whole.setdefault(name, []).extend(shifted)
        encodings += made.encodings or []
    return type(made)(whole, encodings or None)


def require_fast(tokenizer: Any, why: str) -> None:
    """Check that a tokenizer can map tokens to characters.

    Raises:
        CheckpointError: it cannot.
    """
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"the tokenizer {type(tokenizer).__name__} does not say {why}; save the checkpoint with a fast tokenizer "
            "(one that writes tokenizer.json)"
        )

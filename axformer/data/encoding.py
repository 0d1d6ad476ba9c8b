"""A data set in token ids: what goes through the model, and which sample each piece of it belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from axformer.data.padding import BY_TOKENIZER, Padding
from axformer.data.rows import Rows
from axformer.errors import CheckpointError

UNLABELLED = -100
"""The label of a token that counts for nothing, as in transformers."""


@dataclass(frozen=True)
class Encoded:
    """Model rows in the order of the file. A *sample* is what the accept rule counts; long ones may take several model rows."""

    features: dict[str, list[Any]]
    """What the model takes, one list of ids a model row; for multiple choice one list of ids a choice."""
    labels: list[Any]
    """One a model row: a number, a fixed number of numbers, or with ``per_token`` one a token."""
    sample_of_row: list[int]
    """The place of each model row's sample; it never falls, and leaves no sample out."""
    cut: int = 0
    """Samples that were longer than ``max_length`` and lost their end."""
    per_token: bool = False
    """Labels are one a token and are padded with the tokens."""
    reading: Any = None
    """What the task needs to read the model's answers back."""
    padding: Padding = BY_TOKENIZER
    """How model rows share a batch."""
    labels_as: str | None = None
    """How the column of labels is read, in words; None if there is none to decide about."""
    alike: str | None = None
    """What all labels are, in words, where they are all the same and so cannot decide anything; else None."""
    notes: tuple[str, ...] = ()
    """What the user should know of how the rows were read."""
    kept: list[int] | None = None
    """The places of the rows that are samples, where some are not; None if all are."""

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return self.sample_of_row[-1] + 1

    @property
    def choices(self) -> int:
        """Sequences in a model row: 1 but for multiple choice."""
        first = self.features["input_ids"][0]
        return len(first) if isinstance(first[0], list) else 1

    @property
    def lengths(self) -> list[int]:
        """Tokens of each model row; of its longest choice for multiple choice."""
        rows = self.features["input_ids"]
        return [max(map(len, row)) for row in rows] if self.choices > 1 else [len(row) for row in rows]

    def only(self, accepted: Sequence[str]) -> "Encoded":
        """Without the features that a model does not take."""
        return replace(self, features={name: ids for name, ids in self.features.items() if name in accepted})


def one_row_a_sample(
    features: dict[str, list[Any]], labels: list[Any], cut: int, *, per_token: bool = False
) -> Encoded:
    """A data set where every sample goes through the model as one row."""
    return Encoded(features, labels, list(range(len(labels))), cut, per_token)


def without_labels(features: dict[str, list[Any]], sample_of_row: list[int] | None = None, cut: int = 0) -> Encoded:
    """A data set that has no labels, or whose labels nobody looks at: it calibrates.

    Args:
        features: as of :class:`Encoded`.
        sample_of_row: the same; None where every sample goes through the model as one row.
        cut: samples that lost their end.
    """
    rows = len(features["input_ids"])
    return Encoded(features, [UNLABELLED] * rows, list(range(rows)) if sample_of_row is None else sample_of_row, cut)


def tokenize(
    rows: Rows,
    tokenizer: Any,
    first: Sequence[Any],
    second: Sequence[Any] | None,
    *,
    max_length: int | None,
    max_tokens: int | None,
    inputs_a_row: int = 1,
    **options: Any,
) -> tuple[Any, int]:
    """Token ids of texts or of pairs of texts.

    Args:
        max_length: longer inputs are cut to this many tokens; None cuts none.
        max_tokens: the longest input that the model takes; None if it takes any.
        inputs_a_row: how many inputs in a row a row of the file has.
        options: more arguments of the tokenizer.

    Returns:
        The tokenizer's encoding, and how many rows of the file were cut.

    Raises:
        DataError: an input is longer than the model takes and ``max_length`` does not say to cut it, or has no token.
    """
    options |= {"return_attention_mask": True}
    encoding = tokenizer(first, second, truncation=False, verbose=False, **options)
    lengths = [len(ids) for ids in encoding["input_ids"]]
    longest = max(range(len(lengths)), key=lengths.__getitem__)
    if max_length is None and max_tokens is not None and lengths[longest] > max_tokens:
        raise rows.error(
            longest // inputs_a_row + 1,
            f"it has {lengths[longest]} tokens, the model takes {max_tokens}; shorten it, or set max_length={max_tokens} to "
            "cut longer rows",
        )
    if min(lengths) == 0:
        raise rows.error(lengths.index(0) // inputs_a_row + 1, "it is empty, the model needs at least one token")
    if max_length is None or max(lengths) <= max_length:
        return encoding, 0
    cut = {place // inputs_a_row for place, length in enumerate(lengths) if length > max_length}
    return tokenizer(first, second, truncation=True, max_length=max_length, **options), len(cut)


def require_fast(tokenizer: Any, why: str) -> None:
    """Make sure that a tokenizer knows which characters a token stands for.

    Raises:
        CheckpointError: it does not.
    """
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"the tokenizer {type(tokenizer).__name__} does not say {why}; save the checkpoint with a fast tokenizer "
            "(one that writes tokenizer.json)"
        )

"""What speed is measured on: batches of some sizes, of inputs of some lengths, and of the data's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from axformer.architectures.heads import Head
from axformer.data.batches import padded
from axformer.data.encoding import Encoded

BATCHES = (1, 8, 32)
"""One input at a time as a service gets them, and what offline work puts together."""
LENGTHS = (16, 64, 128)
"""Tokens: a phrase, a sentence or two, a paragraph."""
REPORTED = (1, 32)
"""What the end of a pass measures, on the data's own rows; all else is for ``axformer bench``."""
OWN_BATCHES = 30
"""Different batches of the data's own rows."""
MOST_LOGITS = 2**26
"""Numbers that a language model may give back for one batch, 256 MiB of them; batches with more are left out."""


@dataclass(frozen=True)
class Workload:
    """Batches of one kind, to be computed in turn."""

    batch: int
    """Inputs in each."""
    length: int | None
    """Tokens of each input; null for rows of the data, each of its own length."""
    batches: list[dict[str, Tensor]]
    """Each of shape (batch, tokens) or (batch, choices, tokens)."""

    @property
    def tokens(self) -> float:
        """Mean tokens of an input, padding included."""
        return sum(inputs["input_ids"].shape[-1] for inputs in self.batches) / len(self.batches)


@dataclass(frozen=True)
class Limits:
    """What a model takes."""

    tokens: int | None
    """The longest input; null where there is no limit."""
    logits_a_token: int
    """Numbers that it gives back for each token; 0 where it gives back a few an input."""

    def allow(self, batch: int, length: int) -> bool:
        """Whether a batch can be measured."""
        fits = self.tokens is None or length <= self.tokens
        return fits and batch * length * self.logits_a_token <= MOST_LOGITS


def limits_of(head: Head, config: Any, max_tokens: int | None) -> Limits:
    """What models with a head take, by their configuration and the longest input of their family."""
    return Limits(max_tokens, config.vocab_size if head.kind.endswith("LM") else 0)


def workloads(encoded: Encoded, tokenizer: Any, limits: Limits, *, own: bool = True) -> list[Workload]:
    """Every batch size with every length and with the data's own rows, on the CPU, as far as the model takes them.

    Inputs of a given length are rows of the data, cut or repeated.

    Args:
        encoded: the data.
        tokenizer: pads it.
        limits: what the model takes.
        own: whether the lengths of the rows are those of real data.
    """
    sizes = BATCHES[:1] if encoded.padding.alone else BATCHES
    made = [
        Workload(batch, length, [_batch(_of_length(encoded, length), range(batch), tokenizer)])
        for length in LENGTHS
        for batch in sizes
        if limits.allow(batch, length)
    ]
    if not own:
        return made
    return made + own_workloads(encoded, tokenizer, limits, sizes)


def own_workloads(encoded: Encoded, tokenizer: Any, limits: Limits, sizes: Sequence[int]) -> list[Workload]:
    """Batches of the data's own rows, of each size that the model takes; one row at a time where it takes no padding."""
    sizes = [batch for batch in sizes if batch == 1 or not encoded.padding.alone]
    made = [Workload(batch, None, _own_batches(encoded, batch, tokenizer)) for batch in sizes]
    return [one for one in made if all(limits.allow(one.batch, _longest(inputs)) for inputs in one.batches)]


def typical(encoded: Encoded, tokenizer: Any) -> Workload:
    """One row of the median length."""
    lengths = encoded.lengths
    place = sorted(range(len(lengths)), key=lengths.__getitem__)[(len(lengths) - 1) // 2]
    return Workload(1, lengths[place], [_batch(encoded, [place], tokenizer)])


def _own_batches(encoded: Encoded, batch: int, tokenizer: Any) -> list[dict[str, Tensor]]:
    """The rows in the order of the data, batch after batch; small data begins again."""
    count = min(OWN_BATCHES, -(-len(encoded.labels) // batch))
    return [_batch(encoded, range(first, first + batch), tokenizer) for first in range(0, count * batch, batch)]


def _batch(encoded: Encoded, places: Sequence[int], tokenizer: Any) -> dict[str, Tensor]:
    chosen = {name: [values[place % len(values)] for place in places] for name, values in encoded.features.items()}
    return padded(chosen, encoded.choices, tokenizer, encoded.padding)


def _longest(inputs: dict[str, Tensor]) -> int:
    return inputs["input_ids"].shape[-1]


def _of_length(encoded: Encoded, length: int) -> Encoded:
    features = {name: [_stretched(row, length) for row in rows] for name, rows in encoded.features.items()}
    return replace(encoded, features=features)


def _stretched(row: list[Any], length: int) -> list[Any]:
    """The ids of a row, or of each of its choices, repeated and cut to a length."""
    if isinstance(row[0], list):
        return [_stretched(choice, length) for choice in row]
    return (row * -(-length // len(row)))[:length]

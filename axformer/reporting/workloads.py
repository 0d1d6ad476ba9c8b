"""Workloads of speed measurements: batch sizes, input lengths, and batches of the data's own rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from axformer.architectures.heads import Head
from axformer.data.batches import padded
from axformer.data.encoding import Encoded

BATCHES = (1, 8, 32)
"""Batch sizes: single inputs, as a service gets them, and batches for offline work."""
LENGTHS = (16, 64, 128)
"""Input lengths in tokens: a phrase, a sentence or two, a paragraph."""
REPORTED = (1, 32)
"""Batch sizes measured at the end of a pass, on the data's own rows; ``axformer bench`` measures the rest."""
OWN_BATCHES = 30
"""Number of different batches of the data's own rows."""
MOST_LOGITS = 2**26
"""Most logits of one batch of a language model (256 MiB); larger batches are left out."""


@dataclass(frozen=True)
class Workload:
    """Batches of one size and length, to be computed in rotation."""

    batch: int
    """Inputs in each batch."""
    length: int | None
    """Tokens of each input; None for rows of the data in their own lengths."""
    batches: list[dict[str, Tensor]]
    """Each of shape (batch, tokens) or (batch, choices, tokens)."""

    @property
    def tokens(self) -> float:
        """Mean tokens of an input, padding included."""
        return sum(inputs["input_ids"].shape[-1] for inputs in self.batches) / len(self.batches)


@dataclass(frozen=True)
class InputLimits:
    """The largest inputs that a model can be measured on."""

    tokens: int | None
    """The longest input; None if there is no limit."""
    logits_a_token: int
    """Logits for each token; 0 if the model returns only a few for each input."""

    def allow(self, batch: int, length: int) -> bool:
        """Whether a batch can be measured."""
        fits = self.tokens is None or length <= self.tokens
        return fits and batch * length * self.logits_a_token <= MOST_LOGITS


def limits_of(head: Head, config: Any, max_tokens: int | None) -> InputLimits:
    """The limits of models with a head, given their config and the longest input of their family."""
    return InputLimits(max_tokens, config.vocab_size if head.kind.endswith("LM") else 0)


def workloads(encoded: Encoded, tokenizer: Any, limits: InputLimits, *, own: bool = True) -> list[Workload]:
    """Every batch size with every length and with the data's own rows, within the model's limits, on the CPU.

    Inputs of a given length are rows of the data, cut or repeated.

    Args:
        encoded: the data.
        tokenizer: pads the batches.
        limits: limits of the model.
        own: whether to add batches of the rows in their own lengths; False for generated rows.
    """
    sizes = BATCHES[:1] if encoded.padding.alone else BATCHES
    loads = [
        Workload(batch, length, [_batch(_of_length(encoded, length), range(batch), tokenizer)])
        for length in LENGTHS
        for batch in sizes
        if limits.allow(batch, length)
    ]
    if not own:
        return loads
    return loads + own_workloads(encoded, tokenizer, limits, sizes)


def own_workloads(encoded: Encoded, tokenizer: Any, limits: InputLimits, sizes: Sequence[int]) -> list[Workload]:
    """Batches of the data's own rows, for each batch size within the limits; size 1 only if the model takes no padding."""
    sizes = [batch for batch in sizes if batch == 1 or not encoded.padding.alone]
    loads = [Workload(batch, None, _own_batches(encoded, batch, tokenizer)) for batch in sizes]
    return [
        load
        for load in loads
        if all(limits.allow(load.batch, inputs["input_ids"].shape[-1]) for inputs in load.batches)
    ]


def _own_batches(encoded: Encoded, batch: int, tokenizer: Any) -> list[dict[str, Tensor]]:
    """Batches of consecutive rows; small data starts over from the first row."""
    count = min(OWN_BATCHES, -(-len(encoded.labels) // batch))
    return [_batch(encoded, range(first, first + batch), tokenizer) for first in range(0, count * batch, batch)]


def _batch(encoded: Encoded, rows: Sequence[int], tokenizer: Any) -> dict[str, Tensor]:
    chosen = {name: [values[row % len(values)] for row in rows] for name, values in encoded.features.items()}
    return padded(chosen, encoded.choices, tokenizer, encoded.padding)


def _of_length(encoded: Encoded, length: int) -> Encoded:
    features = {name: [_stretched(row, length) for row in rows] for name, rows in encoded.features.items()}
    return replace(encoded, features=features)


def _stretched(row: list[Any], length: int) -> list[Any]:
    """The ids of a row, or of each of its choices, repeated and cut to a length."""
    if isinstance(row[0], list):
        return [_stretched(choice, length) for choice in row]
    return (row * -(-length // len(row)))[:length]

"""Load a finished model in a fresh process and compare it with the model in memory before anybody sees it."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from axformer.data.batches import assemble
from axformer.data.encoding import Encoded
from axformer.errors import ArtifactError
from axformer.forms.fresh import Fresh, FreshPython, outputs_of, texts_of
from axformer.forms.kinds import Kind
from axformer.model.number_format import name_of

ROWS = 32
"""Model rows that both models compute; what is damaged shows on any of them."""
ROUNDINGS = 32
"""How many roundings of the largest logit a model of 16 bits may be off. Another order of the same sums came to 7 on tiny
models of every family; whether the file holds the right weights is asked in float32 (:mod:`axformer.forms.make`)."""
TOKENS = 1024
"""Tokens of all of them together, padding included, for a language model's output holds its whole vocabulary at each."""


def self_check(model: Any, tokenizer: Any, encoded: Encoded, kind: Kind, directory: Path, python: FreshPython) -> Fresh:
    """Make sure that a form that was saved computes what the model in memory does, at the same precision and as closely as
    that form can.

    Args:
        model: the model in memory, in the number format of the form.
        tokenizer: of the model in memory.
        encoded: real inputs; some model rows, spread over them, go through both.
        kind: which form it is.
        directory: what was saved.
        python: what loads it.

    Returns:
        What the fresh process found.

    Raises:
        ArtifactError: the saved model or its tokenizer does not load in a fresh process, or computes something else, or the
            model in memory computes no numbers.
    """
    inputs = check_inputs(encoded, tokenizer, str(model.device))
    expected = outputs_of(model, inputs)
    _check_numbers(expected)
    try:
        found = python.run(directory, str(model.device), inputs)
    except ArtifactError as error:
        raise ArtifactError(f"form '{kind.name}': {error}; it was not published") from None
    if not torch.equal(found.texts, texts_of(tokenizer, inputs)):
        raise ArtifactError(
            "the saved tokenizer reads token ids as other texts than the one in memory; it was not published"
        )
    for name, values in expected.items():
        if name.endswith("logits"):
            _compare(f"form '{kind.name}': its {name}", values, found.outputs.get(name), _tolerance(kind, values))
    return found


def check_inputs(encoded: Encoded, tokenizer: Any, device: str) -> dict[str, Tensor]:
    """At most ``ROWS`` model rows that fit into ``TOKENS``, spread over the data, and at least one; just one where they go
    through the model alone."""
    lengths = encoded.lengths
    fitting = 1 if encoded.padding.alone else max(1, TOKENS // (max(lengths) * encoded.choices))
    places = list(range(0, len(lengths), -(-len(lengths) // min(ROWS, fitting))))
    return assemble(encoded, places, tokenizer, device).inputs


def _check_numbers(expected: dict[str, Tensor]) -> None:
    """Refuse a model that does not compute at its own precision, as float16 overflows with some that were trained in another.

    Raises:
        ArtifactError: some logits are not numbers.
    """
    for name, values in expected.items():
        if name.endswith("logits") and values.isnan().any():
            raise ArtifactError(
                f"the model gives back {name} that are not numbers where it computes in {name_of(values.dtype)}; save the "
                "checkpoint in float32 or bfloat16, and run the pass again"
            )


def _tolerance(kind: Kind, expected: Tensor) -> float:
    """How far outputs may be from these, at their own precision."""
    if expected.dtype is torch.float32:
        return kind.tolerance
    return max(kind.tolerance, ROUNDINGS * torch.finfo(expected.dtype).eps * float(expected.abs().max()))


def _compare(what: str, expected: Tensor, found: Tensor | None, tolerance: float) -> None:
    if found is None or found.shape != expected.shape:
        shape = "missing" if found is None else f"of shape {tuple(found.shape)}"
        raise ArtifactError(f"{what} are {shape}, not {tuple(expected.shape)}; it was not published")
    if found.dtype != expected.dtype:
        raise ArtifactError(f"{what} are {found.dtype}, not {expected.dtype}; it was not published")
    check_difference(what, float((found.float() - expected.float()).abs().max()), tolerance)


def check_difference(what: str, difference: float, tolerance: float) -> None:
    """Refuse outputs that are further apart than their form allows.

    Raises:
        ArtifactError: they are, or some are not numbers.
    """
    if not difference <= tolerance:
        raise ArtifactError(
            f"{what} differ by {difference:.2e} from the model in memory (allowed: {tolerance:.0e}); it was not published"
        )

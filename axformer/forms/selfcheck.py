"""Load a finished model in a fresh process, and compare it with the model in memory before it is published."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from axformer.data.encoding import Encoded
from axformer.errors import ArtifactError
from axformer.forms.alone import outputs_of, texts_of
from axformer.forms.fresh import Fresh, FreshPython
from axformer.forms.kinds import Kind
from axformer.intake.rebuilt import check_inputs
from axformer.model.number_format import not_numbers

ROUNDINGS = 32
"""Allowed difference of a 16-bit model in roundings of its largest logit. A different order of the same sums came to 7 on
tiny models of every family. Whether the file has the right weights is checked in float32 (:mod:`axformer.forms.make`)."""


def self_check(
    model: Any, tokenizer: Any, encoded: Encoded, kind: Kind, directory: Path, python: FreshPython, *, pooled: bool
) -> Fresh:
    """Check that a saved form computes the same as the model in memory, at the same precision and within the form's tolerance.

    Args:
        model: the model in memory, in the number format of the form.
        tokenizer: the tokenizer of the model in memory.
        encoded: real inputs; some model rows, spread over the data, go through both models.
        kind: the kind of the form.
        directory: the directory of the form.
        python: the fresh process that loads the form.
        pooled: whether the head reads one position. Otherwise logits of padding are not compared: a token of padding may see no
            token at all, where implementations of attention differ.

    Returns:
        The measurements of the fresh process.

    Raises:
        ArtifactError: the saved model or its tokenizer does not load in a fresh process, its outputs differ, or the outputs of
            the model in memory are not numbers.
    """
    inputs = check_inputs(encoded, tokenizer, str(model.device))
    expected = outputs_of(model, inputs)
    if (reason := not_numbers(expected)) is not None:
        raise ArtifactError(reason)
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
            real = None if pooled else inputs["attention_mask"].bool().to(values.device)
            _compare(f"form '{kind.name}': its {name}", values, found.outputs.get(name), _tolerance(kind, values), real)
    return found


def _tolerance(kind: Kind, expected: Tensor) -> float:
    """The allowed difference from the expected outputs, at their own precision."""
    if expected.dtype is torch.float32:
        return kind.tolerance
    return max(kind.tolerance, ROUNDINGS * torch.finfo(expected.dtype).eps * float(expected.abs().max()))


def _compare(what: str, expected: Tensor, found: Tensor | None, tolerance: float, real: Tensor | None) -> None:
    """Compare logits, or those of real tokens, where ``real`` says which are, shape (rows, tokens)."""
    if found is None or found.shape != expected.shape:
        shape = "missing" if found is None else f"of shape {tuple(found.shape)}"
        raise ArtifactError(f"{what} are {shape}, not {tuple(expected.shape)}; it was not published")
    if found.dtype != expected.dtype:
        raise ArtifactError(f"{what} are {found.dtype}, not {expected.dtype}; it was not published")
    differences = (found.float() - expected.float()).abs()
    check_difference(what, float((differences if real is None else differences[real]).max()), tolerance)


def check_difference(what: str, difference: float, tolerance: float) -> None:
    """Refuse outputs whose difference exceeds the form's tolerance.

    Raises:
        ArtifactError: the difference is too large, or is not a number.
    """
    if not difference <= tolerance:
        raise ArtifactError(
            f"{what} differ by {difference:.2e} from the model in memory (allowed: {tolerance:.0e}); it was not published"
        )

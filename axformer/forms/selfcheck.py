"""Load a finished model in a fresh process, and compare it with the model in memory before it is published."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from axformer.architectures.embedder import VECTOR
from axformer.data.encoding import Encoded
from axformer.errors import ArtifactError
from axformer.forms.alone import outputs_of, texts_of
from axformer.forms.fresh import Fresh, FreshPython
from axformer.forms.kinds import STOCK, ZEROED, Kind
from axformer.intake.rebuilt import check_inputs
from axformer.model.number_format import compared, not_numbers

ROUNDINGS = 32
"""Allowed difference in roundings of the largest logit, where that is more than the form's tolerance, as of 16-bit models. A
different order of the same sums came to 7 on tiny models of every family. Whether the file has the right weights is checked in
float32 (:mod:`axformer.forms.make`)."""


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
        ArtifactError: the saved model or its tokenizer does not load in a fresh process, or its outputs differ.
    """
    inputs = check_inputs(encoded, tokenizer, str(model.device))
    expected = outputs_of(model, inputs)
    try:
        found = python.run(directory, str(model.device), inputs)
    except ArtifactError as error:
        raise ArtifactError(f"form '{kind.name}': {error}; it was not published") from None
    if not torch.equal(found.texts, texts_of(tokenizer, inputs)):
        raise ArtifactError(
            "the saved tokenizer reads token ids as other texts than the one in memory; it was not published"
        )
    real = None if pooled else inputs["attention_mask"].bool().cpu()
    for name, values in compared(expected).items():
        if name == VECTOR and kind.name in (STOCK, ZEROED):
            continue  # transformers alone pools nothing
        what = f"form '{kind.name}': its {name}"
        _compare(what, values, found.outputs.get(name), kind.tolerance, None if name == VECTOR else real)
    return found


def check_numbers(model: Any, tokenizer: Any, encoded: Encoded) -> None:
    """Refuse a model that fails at its own precision. Some models that were trained in another format overflow in float16.

    Raises:
        ArtifactError: its outputs for some real inputs are not numbers.
    """
    reason = not_numbers(outputs_of(model, check_inputs(encoded, tokenizer, str(model.device))))
    if reason is not None:
        raise ArtifactError(reason)


def _compare(what: str, expected: Tensor, found: Tensor | None, tolerance: float, real: Tensor | None) -> None:
    """Compare logits, or those of real tokens, where ``real`` says which are, shape (rows, tokens)."""
    if found is None or found.shape != expected.shape:
        shape = "missing" if found is None else f"of shape {tuple(found.shape)}"
        raise ArtifactError(f"{what} are {shape}, not {tuple(expected.shape)}; it was not published")
    if found.dtype != expected.dtype:
        raise ArtifactError(f"{what} are {found.dtype}, not {expected.dtype}; it was not published")
    dtype = expected.dtype
    if real is not None:
        expected, found = expected[real], found[real]
    lost = int((expected.isfinite() & ~found.isfinite()).sum())
    if lost:
        raise ArtifactError(
            f"{what} are no numbers at {lost} of {found.numel()} places, as where numbers grow beyond its precision; it was "
            "not published"
        )
    difference = float((found.float() - expected.float()).abs().max())
    check_difference(what, difference, tolerance, largest_of(expected), dtype)


def largest_of(outputs: Tensor) -> float:
    """The size of the largest finite output."""
    return float(outputs.float().nan_to_num(0.0, 0.0, 0.0).abs().max())


def check_difference(
    what: str, difference: float, tolerance: float, largest: float, dtype: torch.dtype = torch.float32
) -> None:
    """Refuse outputs that differ by more than a tolerance allows. It is of the largest output where that is above 1: a sum of
    large numbers is rounded by more, and a head may give prices as well as scores.

    Args:
        difference: the largest.
        largest: the size of the largest expected output.
        dtype: the number format of the outputs.

    Raises:
        ArtifactError: the difference is too large, or is not a number.
    """
    allowed = max(tolerance * max(1.0, largest), ROUNDINGS * torch.finfo(dtype).eps * largest)
    if not difference <= allowed:
        raise ArtifactError(
            f"{what} differ by {difference:.2e} from the model in memory, whose largest is {largest:.2e} (allowed: "
            f"{allowed:.0e}); it was not published"
        )

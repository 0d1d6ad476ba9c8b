"""Load a finished model in a fresh process and compare it with the model in memory before anybody sees it."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from axformer.data.batches import assemble
from axformer.data.encoding import Encoded
from axformer.errors import ArtifactError
from axformer.forms import stock
from axformer.forms.stock import TEXTS

ROWS = 32
"""Model rows that both models compute; what is damaged shows on any of them."""
TOKENS = 1024
"""Tokens of all of them together, padding included, for a language model's output holds its whole vocabulary at each."""
TOLERANCE = 1e-5
TIMEOUT_SECONDS = 600
WITH_PACKAGE = ("-m", "axformer.selfcheck")
"""What a fresh process runs to load a compact model."""


def in_stock_transformers(auto_class: str) -> tuple[str, ...]:
    """What a fresh process runs to load a model without this package, given the Auto class of its head."""
    return ("-I", stock.__file__, auto_class)


def self_check(
    model: Any, tokenizer: Any, encoded: Encoded, directory: Path, program: Sequence[str] = WITH_PACKAGE
) -> None:
    """Make sure that a saved model computes what the model in memory does.

    Args:
        model: the model in memory.
        tokenizer: of the model in memory.
        encoded: real inputs; some model rows, spread over them, go through both.
        directory: what was saved.
        program: how a fresh Python loads it.

    Raises:
        ArtifactError: the saved model or its tokenizer does not load in a fresh process, or computes something else.
    """
    inputs = assemble(encoded, _chosen(encoded), tokenizer, str(model.device)).inputs
    expected = outputs_of(model, inputs)
    with tempfile.TemporaryDirectory(prefix="axformer-check-") as scratch:
        asked, answered = Path(scratch, "inputs"), Path(scratch, "outputs")
        save_file({name: values.contiguous().cpu() for name, values in inputs.items()}, asked)
        _ask([*program, str(directory), str(model.device), str(asked), str(answered)])
        found = load_file(answered)
    if not torch.equal(found.pop(TEXTS), texts_of(tokenizer, inputs)):
        raise ArtifactError(
            "the saved tokenizer reads token ids as other texts than the one in memory; it was not published"
        )
    for name, values in expected.items():
        _compare(name, values, found.get(name))


@torch.inference_mode()
def outputs_of(model: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """All tensors that a model gives back, on the CPU."""
    outputs = model(**inputs)
    return {name: values.contiguous().cpu() for name, values in outputs.items() if isinstance(values, Tensor)}


def texts_of(tokenizer: Any, inputs: dict[str, Tensor]) -> Tensor:
    """What a tokenizer makes of token ids again, as the bytes of one text."""
    texts = tokenizer.batch_decode(inputs["input_ids"].flatten(0, -2))
    return torch.tensor(list("\n".join(texts).encode()), dtype=torch.uint8)


def _chosen(encoded: Encoded) -> list[int]:
    """Places of at most ``ROWS`` model rows that fit into ``TOKENS``, and of one in any case."""
    lengths = encoded.lengths
    fitting = max(1, TOKENS // (max(lengths) * encoded.choices))
    return list(range(0, len(lengths), -(-len(lengths) // min(ROWS, fitting))))


def _compare(name: str, expected: Tensor, found: Tensor | None) -> None:
    if found is None or found.shape != expected.shape:
        shape = "missing" if found is None else f"of shape {tuple(found.shape)}"
        raise ArtifactError(f"the saved model's {name} are {shape}, not {tuple(expected.shape)}; it was not published")
    difference = float((found - expected).abs().max())
    if not difference <= TOLERANCE:
        raise ArtifactError(
            f"the saved model's {name} differ by {difference:.2e} from the model in memory (allowed: {TOLERANCE:.0e}); "
            "it was not published"
        )


def _ask(arguments: Sequence[str]) -> None:
    process = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if process.returncode != 0:
        reason = process.stderr.strip().splitlines()[-1] if process.stderr.strip() else "no reason given"
        raise ArtifactError(f"the saved model does not load in a fresh process: {reason}; it was not published")


def _answer(directory: str, device: str, inputs: str, outputs: str) -> None:
    """What the fresh process does: load as a user would, and compute."""
    from transformers import AutoTokenizer

    from axformer.artifact import load

    tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    model = load(directory).to(device)
    asked = {name: values.to(device) for name, values in load_file(inputs).items()}
    save_file(outputs_of(model, asked) | {TEXTS: texts_of(tokenizer, asked)}, outputs)


if __name__ == "__main__":
    _answer(*sys.argv[1:])

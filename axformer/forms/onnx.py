"""A model as an ONNX graph with everything that a runtime without PyTorch, transformers or this package needs.

The graph takes batches and texts of any length, and holds of the weights those that the outputs need.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from axformer.data.batches import assemble
from axformer.data.encoding import Encoded
from axformer.errors import FormError, first_line
from axformer.forms.facts import facts_of
from axformer.forms.packages import needed

GRAPH_FILE = "model.onnx"
WEIGHTS_FILE = "model.onnx.data"
"""Where the weights are when the graph's file cannot hold them."""
OUTPUTS = ("logits", "start_logits", "end_logits")
"""What heads give back, as transformers names it."""
EXAMPLE = 2, 7
"""Rows and tokens of the example that is followed through the model; no axis may be 0 or 1, which are special."""
PACKAGES = ("onnx", "onnxscript")
"""What the exporter of PyTorch is made with."""
LOGGERS = ("torch.onnx", "onnxscript", "onnx_ir")


def write_onnx(model: Any, tokenizer: Any, encoded: Encoded, directory: Path) -> None:
    """Write ``model.onnx``, and ``config.json`` with plain facts.

    The weights are in ``model.onnx`` as long as there are less than 1.5 GB of them, else in ``model.onnx.data`` beside it.

    Args:
        model: compact or whole, in evaluation mode.
        encoded: real inputs; they say what the model takes.
        directory: where the files go; it is made.

    Raises:
        FormError: the model computes something that no graph can be made of, or a package is not installed.
    """
    for package in PACKAGES:
        needed(package)
    row = assemble(encoded, [0], tokenizer, str(model.device)).inputs
    with torch.inference_mode():
        given = model(**row)
    inputs, outputs = tuple(row), tuple(name for name in OUTPUTS if name in given)
    program = _program(model, row, outputs)
    needed("onnx_ir.passes.common").ClearMetadataAndDocStringPass()(program.model)
    directory.mkdir(parents=True, exist_ok=True)
    program.save(directory / GRAPH_FILE)
    facts_of(model, tokenizer, encoded.padding, inputs, outputs).write(directory)


class _Function(nn.Module):
    """A model as a function of tensors in a fixed order."""

    def __init__(self, model: nn.Module, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self._inputs, self._outputs = inputs, outputs

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        arguments = dict(zip(self._inputs, inputs, strict=True))
        # XLNet takes the mask from 1.0, which the exporter knows for floating-point numbers only.
        arguments["attention_mask"] = arguments["attention_mask"].float()
        given = self.model(**arguments)
        return tuple(given[name] for name in self._outputs)


def _program(model: Any, row: dict[str, Tensor], outputs: tuple[str, ...]) -> Any:
    rows, tokens = EXAMPLE
    example = tuple(values.new_ones((rows, *values.shape[1:-1], tokens)) for values in row.values())
    names = ("batch", "choices", "tokens") if example[0].dim() > len(EXAMPLE) else ("batch", "tokens")
    try:
        with _in_peace(), _plain_attention(model), torch.no_grad():
            return torch.onnx.export(
                _Function(model, tuple(row), outputs).eval(),
                example,
                dynamo=True,
                input_names=list(row),
                output_names=list(outputs),
                dynamic_shapes=(tuple(dict(enumerate(names)) for _ in row),),
                verbose=False,
            )
    except Exception as error:  # of the exporter or of anything that it runs: all are about this model
        raise FormError(f"the model cannot be written as ONNX: {first_line(_cause_of(error))}") from error


def _cause_of(error: BaseException) -> Exception:
    """What went wrong first; the exporter wraps it in advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    assert isinstance(error, Exception)
    return error


@contextmanager
def _plain_attention(model: Any) -> Iterator[None]:
    """Attention in single steps, which make a smaller and faster graph than PyTorch's fused function taken apart."""
    before = model.config._attn_implementation
    try:
        if before == "sdpa":
            model.config._attn_implementation = "eager"
        yield
    finally:
        model.config._attn_implementation = before


@contextmanager
def _in_peace() -> Iterator[None]:
    """Without the exporter's remarks to its own developers."""
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    try:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)

"""Writes a model as an ONNX graph, with everything that a runtime without PyTorch, transformers and this package needs.

The graph takes batches of any size and texts of any length. It only contains the weights that the outputs depend on.
"""

import logging
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.embedder import TOKENS, VECTOR
from axformer.data.batches import assemble
from axformer.data.encoding import Encoded
from axformer.errors import ArtifactError, ConfigError, FormError, first_line
from axformer.forms.facts import facts_of
from axformer.model.number_format import compared

GRAPH_FILE = "onnx/model.onnx"
WEIGHTS_FILE = "onnx/model.onnx.data"
"""The file of the weights if they do not fit into the graph's file."""
OUTPUTS = ("logits", "start_logits", "end_logits", VECTOR, TOKENS)
"""Names of the outputs of heads in transformers, and of embedders."""
EXAMPLE = 2, 7
"""Rows and tokens of the example that is traced through the model. Sizes 0 and 1 are special cases, so no axis may have
them."""
PACKAGES = ("onnx", "onnxscript")
"""Packages that PyTorch's exporter needs."""
LOGGERS = ("torch.onnx", "onnxscript", "onnx_ir")


def write_onnx(model: Any, tokenizer: Any, encoded: Encoded, directory: Path) -> None:
    """Write ``onnx/model.onnx``, and ``config.json`` with the facts about the model.

    Weights of less than 1.5 GB are in the graph's file, larger ones in ``onnx/model.onnx.data``.

    Args:
        model: compact or whole, in evaluation mode.
        encoded: real inputs; they determine the inputs of the graph.
        directory: the directory of the files; it is created.

    Raises:
        FormError: the model cannot be exported as a graph, or a package is not installed.
    """
    for package in PACKAGES:
        needed(package)
    row = assemble(encoded, [0], tokenizer, str(model.device)).inputs
    with torch.inference_mode():
        given = model(**row)
    inputs, outputs = tuple(row), tuple(name for name in OUTPUTS if name in compared(given))
    program = _program(model, row, outputs)
    needed("onnx_ir.passes.common").ClearMetadataAndDocStringPass()(program.model)
    (directory / GRAPH_FILE).parent.mkdir(parents=True, exist_ok=True)
    program.save(directory / GRAPH_FILE)
    facts_of(model, tokenizer, encoded.padding, inputs, outputs).write(directory)


def needed(name: str) -> Any:
    """Import a module of the extra ``onnx``.

    Raises:
        FormError: the module's package is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise FormError(
            f"ONNX files need the package {name.partition('.')[0]}, which does not load ({error}); "
            "pip install 'axformer[onnx]'"
        ) from None


def check_packages(forms: Collection[str]) -> None:
    """Check before a run that the forms that were asked for can be written here.

    Raises:
        ConfigError: a package is not installed.
    """
    if not any(name.startswith("onnx") for name in forms):
        return
    for package in (*PACKAGES, "onnxruntime"):
        if find_spec(package) is None:
            raise ConfigError(
                f"forms: ONNX files need the package {package}, which is not installed; pip install 'axformer[onnx]', or leave "
                "the form out",
                "forms",
            )


def opened(path: Path, threads: int | None, content: bytes | None = None) -> Any:
    """Open a graph in ONNX Runtime, or one that takes its place without being optimised.

    Args:
        threads: number of threads for each operation; None for one per core.

    Raises:
        ArtifactError: the file is missing or damaged.
        FormError: ONNX Runtime is not installed.
    """
    runtime = needed("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.log_severity_level = 3  # its warnings are meant for its developers
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads release their core
    if content is not None:
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    try:
        return runtime.InferenceSession(content or path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - its errors have no common base class
        raise ArtifactError(f"'{path}' is not an ONNX graph that loads: {first_line(error)}") from None


class _Function(nn.Module):
    """A model as a function of tensors in a fixed order."""

    def __init__(self, model: nn.Module, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self._inputs, self._outputs = inputs, outputs

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        arguments = dict(zip(self._inputs, inputs, strict=True))
        # XLNet subtracts the mask from 1.0, which the exporter supports for floating-point numbers only.
        arguments["attention_mask"] = arguments["attention_mask"].float()
        given = self.model(**arguments)
        return tuple(given[name] for name in self._outputs)


def _program(model: Any, row: dict[str, Tensor], outputs: tuple[str, ...]) -> Any:
    rows, tokens = EXAMPLE
    example = tuple(values.new_ones((rows, *values.shape[1:-1], tokens)) for values in row.values())
    names = ("batch", "choices", "tokens") if example[0].dim() > len(EXAMPLE) else ("batch", "tokens")
    try:
        with _silenced(), _plain_attention(model), torch.no_grad():
            return torch.onnx.export(
                _Function(model, tuple(row), outputs).eval(),
                example,
                dynamo=True,
                input_names=list(row),
                output_names=list(outputs),
                dynamic_shapes=(tuple(dict(enumerate(names)) for _ in row),),
                verbose=False,
            )
    except Exception as error:  # from the exporter or anything that it runs: all concern this model
        raise FormError(f"the model cannot be written as ONNX: {first_line(_cause_of(error))}") from error


def _cause_of(error: BaseException) -> Exception:
    """The original error; the exporter wraps it in advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    assert isinstance(error, Exception)
    return error


@contextmanager
def _plain_attention(model: Any) -> Iterator[None]:
    """Compute attention in single steps, which give a smaller and faster graph than PyTorch's decomposed fused function."""
    before = model.config._attn_implementation
    try:
        if before == "sdpa":
            model.config._attn_implementation = "eager"
        yield
    finally:
        model.config._attn_implementation = before


@contextmanager
def _silenced() -> Iterator[None]:
    """Silence the exporter's messages, which are meant for its developers."""
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

"""Load a form in a fresh process, as its users do, to measure its outputs, loading time and memory.

The program in this process does its imports and reads one line, a JSON list of ``DIRECTORY DEVICE INPUTS OUTPUTS``. It loads
the form from the directory, computes the inputs, writes the outputs, and prints one line of JSON with the figures of
:class:`Fresh`. There are three such programs: :mod:`axformer.forms.answering` for forms that need this package,
:mod:`axformer.forms.alone` for those that transformers loads, and :mod:`axformer.forms.onnx_alone` for ONNX.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from axformer.errors import ArtifactError
from axformer.forms import alone, answering, interpreter
from axformer.forms.alone import TEXTS
from axformer.forms.kinds import BASE, KINDS, ONNX, ONNX_INT8, STOCK, ZEROED


@dataclass(frozen=True)
class Fresh:
    """The measurements of a fresh process."""

    load_seconds: float
    """Time to load the model from files in the system's cache, after the form's libraries were imported."""
    idle_bytes: int
    """Peak memory of the process after importing the form's libraries, before loading the model."""
    peak_bytes: int
    """Peak memory of the process after computing one batch."""
    outputs: dict[str, Tensor]
    """All output tensors for that batch, on the CPU."""
    texts: Tensor
    """The batch's token ids decoded by the saved tokenizer, see :func:`axformer.forms.alone.texts_of`."""


def in_package(name: str) -> tuple[str, ...]:
    """The arguments of a fresh Python that loads the form of this name with this package."""
    return ("-m", answering.__name__, name)


def in_stock_transformers(auto_class: str) -> tuple[str, ...]:
    """The arguments of a fresh Python that loads a model without this package, by the Auto class of its head."""
    return ("-I", alone.__file__, auto_class)


def program_of(name: str, auto_class: str) -> tuple[str, ...]:
    """The arguments of a fresh Python that loads a form, or the untouched checkpoint, as its users do."""
    if name in (ONNX, ONNX_INT8):
        return ("-I", str(Path(alone.__file__).with_name("onnx_alone.py")), KINDS[name].graph)
    return in_stock_transformers(auto_class) if name in (BASE.name, STOCK, ZEROED) else in_package(name)


class FreshPython:
    """A fresh process for one form. As a context manager, it starts early and does its imports in parallel to this process; if
    it has not run by the end of the context, it is killed."""

    def __init__(self, program: Sequence[str]) -> None:
        """
        Args:
            program: the arguments of the fresh Python.
        """
        self._program = program
        self._started: interpreter.FreshInterpreter | None = None

    def __enter__(self) -> "FreshPython":
        self._started = interpreter.launch(self._program)
        return self

    def __exit__(self, *_: object) -> None:
        if self._started is not None:
            self._started.end()

    def run(self, directory: Path, device: str, inputs: dict[str, Tensor]) -> Fresh:
        """Load a form and compute one batch. The process is started unless it already was.

        Args:
            directory: the form's own directory.
            device: the device to compute on.
            inputs: the tensors of the batch by name.

        Raises:
            ArtifactError: the form does not load or does not compute.
        """
        started = self._started or interpreter.launch(self._program)
        with tempfile.TemporaryDirectory(prefix="axformer-fresh-") as scratch:
            asked, answered = Path(scratch, "inputs"), Path(scratch, "outputs")
            save_file({name: values.contiguous().cpu() for name, values in inputs.items()}, asked)
            process = started.tell(json.dumps([str(directory), device, str(asked), str(answered)]))
            if process.returncode != 0:
                reason = process.stderr.strip().splitlines()[-1] if process.stderr.strip() else "no reason given"
                raise ArtifactError(f"the saved model does not load in a fresh process: {reason}")
            outputs = load_file(answered)
        return Fresh(**json.loads(process.stdout.splitlines()[-1]), texts=outputs.pop(TEXTS), outputs=outputs)

"""Load a form in a process of its own, as whoever deploys it does: what it computes, how long that takes, how much memory.

A program does its imports and reads one line, a list in JSON of ``DIRECTORY DEVICE INPUTS OUTPUTS``: it loads what is in the
directory, computes the inputs, writes what came of them, and prints one line of JSON with the figures of :class:`Fresh`.
:mod:`axformer.forms.answering` is one, for forms that need this package, and :mod:`axformer.forms.stock` is another, for those
that do not.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from axformer.errors import ArtifactError
from axformer.forms import answering, interpreter, stock
from axformer.forms.kinds import BASE, ZEROED
from axformer.forms.stock import TEXTS


@dataclass(frozen=True)
class Fresh:
    """What a fresh process found."""

    load_seconds: float
    """Reading the model from its files, which the system had read before; the form's libraries were imported already."""
    idle_bytes: int
    """The most memory that the process had held when the form's libraries were imported and nothing was loaded yet."""
    peak_bytes: int
    """The most memory that the process held until it had computed one batch."""
    outputs: dict[str, Tensor]
    """All tensors that the model gave back for that batch, on the CPU."""
    texts: Tensor
    """What the tokenizer beside the model makes of the batch's token ids, see :func:`texts_of`."""


def in_package(name: str) -> tuple[str, ...]:
    """What a fresh Python runs to load the form of this name with this package."""
    return ("-m", answering.__name__, name)


def in_stock_transformers(auto_class: str) -> tuple[str, ...]:
    """What a fresh Python runs to load a model without this package, given the Auto class of its head."""
    return ("-I", stock.__file__, auto_class)


def program_of(name: str, auto_class: str) -> tuple[str, ...]:
    """What a fresh Python runs to load a form, or the untouched checkpoint, as its users do."""
    return in_stock_transformers(auto_class) if name in (BASE.name, ZEROED) else in_package(name)


class FreshPython:
    """A fresh process for one form. As a context it is started, does its imports while this process goes on, and is ended where
    nobody has let it run."""

    def __init__(self, program: Sequence[str]) -> None:
        """
        Args:
            program: what the fresh Python runs.
        """
        self._program = program
        self._started: interpreter.Interpreter | None = None

    def __enter__(self) -> "FreshPython":
        self._started = interpreter.launch(self._program)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._started is not None:
            self._started.end()

    def run(self, directory: Path, device: str, inputs: dict[str, Tensor]) -> Fresh:
        """Load a form, and let it compute one batch. It is started now where that has not been done.

        Args:
            directory: of the form itself.
            device: where it computes.
            inputs: the batch, by name.

        Raises:
            ArtifactError: it does not load there, or does not compute.
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


@torch.inference_mode()
def outputs_of(model: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """All tensors that a model gives back, on the CPU."""
    outputs = model(**inputs)
    return {name: values.contiguous().cpu() for name, values in outputs.items() if isinstance(values, Tensor)}


def texts_of(tokenizer: Any, inputs: dict[str, Tensor]) -> Tensor:
    """What a tokenizer makes of token ids again, as the bytes of one text."""
    texts = tokenizer.batch_decode(inputs["input_ids"].flatten(0, -2))
    return torch.tensor(list("\n".join(texts).encode()), dtype=torch.uint8)

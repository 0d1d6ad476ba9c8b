"""Which forms there are: where each lies in a result, and how it is loaded. Light to import: a process asks it first.

A new form is a module with a function ``load(directory, device)`` and a line of :data:`KINDS`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

WEIGHTS = "*.safetensors"
COMPACT, ZEROED, ONNX, ONNX_INT8 = "compact", "zeroed", "onnx", "onnx_int8"
"""The names of the forms; the others are compared with the compact one."""


@dataclass(frozen=True)
class Kind:
    """One kind of form."""

    name: str
    directory: str
    """Its directory in a result."""
    files: str
    """A pattern of the files there that hold its weights."""
    module: str
    """Its loader ``load(directory, device)`` is in this module, which imports all that the form needs."""
    tolerance: float
    """How far its logits may be from those of the model in memory, both computed in float32."""
    summary: str
    """What it is and what it needs, for people."""
    keeps_format: bool = True
    """Whether its weights have the number format of the checkpoint; else they are float32, or made of that."""

    @property
    def load(self) -> Callable[[Path, str], Any]:
        """The loader; its module is imported now."""
        loader: Callable[[Path, str], Any] = import_module(self.module).load
        return loader

    def is_in(self, result: Path) -> bool:
        """Whether a result has this form, sound or damaged."""
        return (result / self.directory).is_dir()

    def bytes_in(self, directory: Path) -> int:
        """Size of the weight files in the form's own directory."""
        return sum(path.stat().st_size for path in directory.glob(self.files))


BASE = Kind(
    name="base",
    directory=".",
    files=WEIGHTS,
    module="axformer.forms.whole",
    tolerance=0.0,
    summary="the checkpoint before the pass",
)
"""The untouched checkpoint, measured like a form."""

_FORMS = (
    Kind(
        name=COMPACT,
        directory="model",
        files=WEIGHTS,
        module="axformer.forms.compact",
        tolerance=1e-5,
        summary="physically smaller; needs this package",
    ),
    Kind(
        name=ZEROED,
        directory="zeroed",
        files=WEIGHTS,
        module="axformer.forms.whole",
        tolerance=1e-4,
        summary="zeros where something went; transformers alone loads it; as large and as slow as before",
    ),
    Kind(
        name=ONNX,
        directory="onnx",
        files="model.onnx*",
        module="axformer.forms.onnx_model",
        tolerance=1e-3,
        summary="a graph for runtimes without PyTorch, as small as the compact form in float32",
        keeps_format=False,
    ),
    Kind(
        name=ONNX_INT8,
        directory="onnx_int8",
        files="model.onnx*",
        module="axformer.forms.onnx_model",
        tolerance=math.inf,
        summary="the same graph with weights in 8 bits; its answers differ a little",
        keeps_format=False,
    ),
)
KINDS = {kind.name: kind for kind in _FORMS}
"""The forms of a result by name, in the order in which they are told."""


def kind_named(name: str) -> Kind:
    """A form of a result, or the untouched checkpoint."""
    return BASE if name == BASE.name else KINDS[name]

"""The kinds of forms, with their directories in a result and their loaders. This module is quick to import.

A new form needs a module with a function ``load(directory, device)`` and an entry in :data:`KINDS`.
"""

import math
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

WEIGHTS = "*.safetensors"
STOCK, COMPACT, ZEROED, ONNX, ONNX_FP16, ONNX_INT8 = "stock", "compact", "zeroed", "onnx", "onnx_fp16", "onnx_int8"
"""The names of the forms. The others are compared with the compact form."""
HUB = "hub"
"""The directory of the ONNX forms, laid out as loaders of the Hugging Face Hub expect it (docs/serving.md)."""


@dataclass(frozen=True)
class Kind:
    """A kind of form."""

    name: str
    directory: str
    """The form's directory in a result."""
    files: str
    """The pattern of the weight files in the directory."""
    module: str
    """The module with the loader ``load(directory, device)``; it imports everything that the form needs."""
    tolerance: float
    """The largest allowed difference of logits from the model in memory, both computed in float32."""
    summary: str
    """A description for users: what the form is, and what it needs."""
    keeps_format: bool = True
    """Whether the weights have the number format of the checkpoint; otherwise they are float32, or derived from float32."""
    graph: str = ""
    """The file to load in a directory that has several; empty where the directory is what is loaded."""
    loader: str = "load"
    """The name of the loader in its module."""
    for_gpu: bool = False
    """Whether only a GPU gains by it. Its speed and memory are then not measured on the CPU, and it is never advised."""

    @property
    def load(self) -> Callable[[Path, str], Any]:
        """The loader; accessing it imports its module."""
        loader: Callable[[Path, str], Any] = getattr(import_module(self.module), self.loader)
        return loader

    @property
    def place(self) -> str:
        """What is loaded, in a result: a directory, which ends with a slash, or a file."""
        return f"{self.directory}/{self.graph}"

    def is_in(self, result: Path) -> bool:
        """Whether a result has this form, intact or damaged."""
        return (result / self.place).exists()

    def of(self, names: Collection[str]) -> list[str]:
        """The names of this form's files among those of a result: what lies in its directory, but for the graphs of others."""
        mine = [name for name in names if name.startswith(f"{self.directory}/")]
        others = [kind for kind in KINDS.values() if kind.directory == self.directory and kind is not self]
        if others and not any(self._owns(name) for name in mine):
            return []
        return [name for name in mine if not any(kind._owns(name) for kind in others)]

    def remove(self, result: Path) -> None:
        """Remove the form from a result: its weight files, and its directory where no other form is left in it."""
        directory = result / self.directory
        for path in directory.glob(self.files):
            path.unlink()
        if not any(
            kind.directory == self.directory and kind.is_in(result) for kind in KINDS.values() if kind is not self
        ):
            shutil.rmtree(directory, ignore_errors=True)

    def _owns(self, name: str) -> bool:
        return fnmatchcase(name, f"{self.directory}/{self.files}")

    def bytes_in(self, directory: Path) -> int:
        """Total size of the weight files in the form's own directory, with those of layers behind a pooling."""
        files = [*directory.glob(self.files), *directory.glob(f"[2-4]_Dense/{self.files}")]
        return sum(path.stat().st_size for path in files)


BASE = Kind(
    name="base",
    directory=".",
    files=WEIGHTS,
    module="axformer.forms.stock",
    tolerance=0.0,
    summary="the checkpoint before the pass",
)
"""The untouched checkpoint, measured like a form."""

_FORMS = (
    Kind(
        name=STOCK,
        directory="stock",
        files=WEIGHTS,
        module="axformer.forms.stock",
        tolerance=1e-4,
        summary="physically smaller; transformers alone loads it",
    ),
    Kind(
        name=COMPACT,
        directory="model",
        files=WEIGHTS,
        module="axformer.artifact",
        tolerance=1e-5,
        summary="physically smaller; needs this package",
    ),
    Kind(
        name=ZEROED,
        directory="zeroed",
        files=WEIGHTS,
        module="axformer.forms.stock",
        tolerance=1e-4,
        summary="zeros where something went; transformers alone loads it; as large and as slow as before",
    ),
    Kind(
        name=ONNX,
        directory=HUB,
        files="onnx/model.onnx*",
        graph="onnx/model.onnx",
        module="axformer.forms.onnx_model",
        tolerance=1e-3,
        summary="a graph for runtimes without PyTorch, as small as the compact form in float32",
        keeps_format=False,
    ),
    Kind(
        name=ONNX_FP16,
        directory=HUB,
        files="onnx/model_fp16.onnx*",
        graph="onnx/model_fp16.onnx",
        module="axformer.forms.onnx_model",
        loader="load_fp16",
        tolerance=2**-5,  # 32 roundings, as of models in 16 bits (axformer.forms.selfcheck)
        summary="the same graph in half precision, for GPUs and browsers with WebGPU; on a CPU it is no faster",
        keeps_format=False,
        for_gpu=True,
    ),
    Kind(
        name=ONNX_INT8,
        directory=HUB,
        files="onnx/model_quantized.onnx*",
        graph="onnx/model_quantized.onnx",
        module="axformer.forms.onnx_model",
        loader="load_int8",
        tolerance=math.inf,
        summary="the same graph with weights in 8 bits; its answers differ a little",
        keeps_format=False,
    ),
)
KINDS = {kind.name: kind for kind in _FORMS}
"""The forms of a result by name, in the order of reports."""


def seen_from(place: str, inside: str) -> str:
    """A place of a result for a reader in one of its directories, which may have been taken out of it; empty for its top."""
    own = place.removeprefix(f"{inside}/")
    return place if not inside else own if own != place else f"{place} of the result"


def kind_named(name: str) -> Kind:
    """A form of a result, or the untouched checkpoint."""
    return BASE if name == BASE.name else KINDS[name]

"""Which forms there are: where each lies in a result, and how it is loaded. Light to import: a process asks it first.

A new form is a module with a function ``load(directory, device)`` and a line of :data:`KINDS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

WEIGHTS = "*.safetensors"


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
    """How far its logits may be from those of the model in memory."""
    summary: str
    """What it is and what it needs, for people."""

    @property
    def load(self) -> Callable[[Path, str], Any]:
        """The loader; its module is imported now."""
        loader: Callable[[Path, str], Any] = import_module(self.module).load
        return loader

    def is_in(self, result: Path) -> bool:
        """Whether a result has this form."""
        return any((result / self.directory).glob(self.files))

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

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            name="compact",
            directory="model",
            files=WEIGHTS,
            module="axformer.forms.compact",
            tolerance=1e-5,
            summary="physically smaller; needs this package",
        ),
        Kind(
            name="zeroed",
            directory="zeroed",
            files=WEIGHTS,
            module="axformer.forms.whole",
            tolerance=1e-4,
            summary="of the old shape, with zeros where something went; needs transformers alone",
        ),
    )
}
"""The forms of a result, in the order in which they are told."""

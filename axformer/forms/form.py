"""A form of a finished model, as reports measure it."""

from dataclasses import dataclass
from typing import Any

from axformer.forms.fresh import Fresh


@dataclass(frozen=True)
class Form:
    """One form that was made, loaded from its files."""

    name: str
    """One of :data:`axformer.forms.kinds.KINDS`."""
    model: Any
    """Called like a transformers model: it takes tensors by name, gives an output with the same names, has a ``device``."""
    bytes: int
    """Size of the weight files."""
    fresh: Fresh | None
    """What a fresh process needed for it; null where none could be had."""


@dataclass(frozen=True)
class NotMade:
    """A form that this model does not have."""

    name: str
    reason: str
    """For people, such as ``hard attention in layers 3 and 4 has no place in stock transformers``."""

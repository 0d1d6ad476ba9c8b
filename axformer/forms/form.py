"""A form of a finished model, as reports measure it."""

from dataclasses import dataclass
from typing import Any

from axformer.evaluation.plain import Predictions
from axformer.forms.agreement import Agreement
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
    """What a fresh process needed for it; None if none could be had."""

    checked: "Checked | None" = None
    """How it was compared in float32 with the model in memory, over all rows; None if it was not."""


@dataclass(frozen=True)
class Checked:
    """A form compared with the model in memory, both computing in float32."""

    expected: Predictions
    """Of the model in memory."""
    agreement: Agreement


@dataclass(frozen=True)
class NotMade:
    """A form that this model does not have."""

    name: str
    reason: str
    """For people, such as ``hard attention in layers 3 and 4 has no place in stock transformers``."""

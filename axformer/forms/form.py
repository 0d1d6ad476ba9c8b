"""The forms of a finished model for reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq
from typing import Any

from axformer.forms.agreement import Agreement
from axformer.forms.fresh import Fresh
from axformer.scores.decisions import decisions_of
from axformer.scores.measured import Measured


@dataclass(frozen=True)
class Form:
    """A form, loaded from its files."""

    name: str
    """One of :data:`axformer.forms.kinds.KINDS`."""
    model: Any
    """Called like a transformers model: it takes tensors by name, returns outputs with the same names, and has a ``device``."""
    bytes: int
    """Size of the weight files."""
    fresh: Fresh | None
    """Measurements of a fresh process that loaded it; None if there are none."""

    checked: "CheckedForm | None" = None
    """The comparison with the model in memory in float32, over all rows; None if it was not made."""


@dataclass(frozen=True)
class CheckedForm:
    """A form compared with the model in memory, both computing in float32."""

    expected: Measured
    """The model in memory."""
    agreement: Agreement

    @property
    def same(self) -> float | None:
        """Share of the rows with the same answer; None where answers are numbers."""
        mine, theirs = decisions_of(self.expected), decisions_of(self.agreement.measured)
        return None if mine is None or theirs is None else sum(map(eq, mine, theirs)) / len(mine)


@dataclass(frozen=True)
class NotMade:
    """A form that this model cannot have."""

    name: str
    reason: str
    """The reason for users, for example ``hard attention in layers 3 and 4 has no place in stock transformers``."""
    failed: bool = False
    """Whether it was made and failed its check; otherwise this model has no such form."""


@dataclass(frozen=True)
class Written:
    """The forms of a result."""

    forms: Sequence[Form | NotMade]
    """Of the finished model; at least one of them is made."""
    before: Sequence[Form | NotMade] = ()
    """Of the untouched model, for comparison; their files are gone."""

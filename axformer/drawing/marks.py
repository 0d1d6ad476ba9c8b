"""How a trial and an element look in every picture, on pages of the service and on paper: form, colour and words.

Forms differ as well as colours, for readers who cannot tell colours apart. What was accepted points down, as the loss goes; a
loss that is only a lower bound points up, to where it may be.
"""

from dataclasses import dataclass
from typing import Protocol

from axformer.plan.trial import Verdict


@dataclass(frozen=True)
class Colour:
    """For light and for dark grounds; at least 3:1 against them."""

    light: str
    dark: str


GOOD = Colour("#177a45", "#4cc38a")
OPEN = Colour("#b86e00", "#f0a63c")
QUIET = Colour("#808896", "#737b8b")
ACCENT = Colour("#4a55d6", "#929bff")
SOFT = Colour("#5a6170", "#9ba3b2")
KEPT = Colour("#7d87a0", "#7681a0")
UNTRIED = Colour("#e7e9ee", "#262a33")
CURVES = (
    ACCENT,
    OPEN,
    GOOD,
    Colour("#c02b7a", "#f27bb9"),
    Colour("#0b7c94", "#4cc3dc"),
    Colour("#6b4a2f", "#c9a27f"),
)
"""Of jobs side by side; more could not be told apart."""


@dataclass(frozen=True)
class Mark:
    """How a trial is marked."""

    path: str
    """SVG path from the place of the trial on."""
    verdict: str
    """The verdict in a word."""
    legend: str


MARKS = {
    "accept": Mark("m-5-4h10l-5 9z", "accepted", "accepted"),
    "refine": Mark("m0-4l4 4l-4 4l-4-4z", "refined", "refined"),
    "reject": Mark("m0 0h.01", "rejected", "rejected"),
    "bound": Mark("m-3 1.5l3-3.5l3 3.5", "rejected", "rejected early: at least"),
}
"""By verdict; ``bound`` is a rejected trial whose loss is a lower bound."""
LINES = {"least": "least so far", "base": "untouched model"}
"""Lines beside the marks, and what they mean."""


class Tried(Protocol):
    """What a picture shows of a trial: a record of a trace, or a row of a database with the same names."""

    @property
    def seq(self) -> int:
        """Its number; 0 is the untouched model."""

    @property
    def element(self) -> str | None:
        """What was tried; ``None`` for the untouched model."""

    @property
    def loss(self) -> float:
        """Of the trial, or its lower bound."""

    @property
    def loss_is_bound(self) -> bool:
        """Whether the loss is a lower bound."""

    @property
    def min_loss(self) -> float:
        """The least before the trial."""

    @property
    def helped(self) -> int | None:
        """Samples whose loss fell."""

    @property
    def samples(self) -> int:
        """Samples evaluated."""

    @property
    def verdict(self) -> str:
        """A ``Verdict``."""


def kind_of(trial: Tried) -> str:
    """Which of ``MARKS`` a trial has, or ``base``."""
    return "bound" if trial.loss_is_bound and trial.verdict == Verdict.REJECT else str(trial.verdict)


def measured(trial: Tried) -> str:
    """What was measured in a trial, in words."""
    loss = f"loss {'at least ' if trial.loss_is_bound else ''}{trial.loss:.4f}"
    helped = "" if trial.helped is None else f", helped {trial.helped:,} of {trial.samples:,}"
    return f"{loss}, least before {trial.min_loss:.4f}{helped}"

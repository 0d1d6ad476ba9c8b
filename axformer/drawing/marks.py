"""The look of trials and elements in every picture, on pages and on paper: shape, colour and words.

Shapes differ as well as colours, for readers who cannot distinguish colours. Accepted trials point down, like the loss; a lower
bound points up, where the loss lies.
"""

from dataclasses import dataclass
from typing import Protocol

from axformer.plan.trial import Verdict


@dataclass(frozen=True)
class Colour:
    """Colours for light and dark backgrounds, with a contrast of at least 3:1."""

    light: str
    dark: str


GOOD = Colour("#177a45", "#4cc38a")
OPEN = Colour("#b86e00", "#f0a63c")
QUIET = Colour("#808896", "#737b8b")
ACCENT = Colour("#4a55d6", "#929bff")
SOFT = Colour("#5a6170", "#9ba3b2")
KEPT = Colour("#7d87a0", "#7681a0")
UNTRIED = Colour("#e7e9ee", "#262a33")
CURVES = (ACCENT, OPEN, GOOD, Colour("#c02b7a", "#f27bb9"), Colour("#0b7c94", "#4cc3dc"), Colour("#6b4a2f", "#c9a27f"))
"""Colours of jobs side by side; more could not be distinguished."""


@dataclass(frozen=True)
class Mark:
    """The mark of a trial."""

    path: str
    """SVG path, relative to the position of the trial."""
    colour: Colour
    verdict: str
    """The verdict in a word."""
    legend: str


MARKS = {
    "accept": Mark("m-5-4h10l-5 9z", GOOD, "accepted", "accepted"),
    "refine": Mark("m0-4l4 4l-4 4l-4-4z", OPEN, "refined", "refined"),
    "reject": Mark("m0 0h.01", QUIET, "rejected", "rejected"),
    "bound": Mark("m-3 1.5l3-3.5l3 3.5", QUIET, "rejected", "rejected early, not measured to the end"),
}
"""Marks by verdict; ``bound`` is a rejected trial whose loss is a lower bound."""
LINES = {"least": "least so far", "base": "untouched model"}
"""Lines of the chart and their meanings."""


class DrawnTrial(Protocol):
    """The fields of a trial that a picture needs: a record of a trace, or a database row with the same names."""

    @property
    def seq(self) -> int:
        """Its number; 0 is the untouched model."""

    @property
    def element(self) -> str | None:
        """The element tried; None for the untouched model."""

    @property
    def loss(self) -> float:
        """Loss of the trial, or its lower bound."""

    @property
    def loss_is_bound(self) -> bool:
        """Whether the loss is a lower bound."""

    @property
    def min_loss(self) -> float:
        """Lowest loss before the trial."""

    @property
    def helped(self) -> int | None:
        """Samples whose loss fell."""

    @property
    def samples(self) -> int:
        """Samples evaluated."""

    @property
    def frequency(self) -> float | None:
        """The share of bootstrap draws that accept it; None if it was not asked for."""

    @property
    def verdict(self) -> str:
        """A ``Verdict``."""


def kind_of(trial: DrawnTrial) -> str:
    """Which of ``MARKS`` a trial has, or ``base``."""
    return "bound" if trial.loss_is_bound and trial.verdict == Verdict.REJECT else str(trial.verdict)


def measured(trial: DrawnTrial) -> str:
    """The measurements of a trial in words."""
    loss = f"loss {'at least ' if trial.loss_is_bound else ''}{trial.loss:.4f}"
    helped = "" if trial.helped is None else f", helped {trial.helped:,} of {trial.samples:,}"
    often = "" if trial.frequency is None else f", accepted in {trial.frequency:.0%} of the draws"
    return f"{loss}, least before {trial.min_loss:.4f}{helped}{often}"

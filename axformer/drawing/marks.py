"""How a trial and an element look in every picture, on pages of the service and on paper: form, colour and words.

Forms differ beside colours, for who cannot tell these apart. What was accepted points down, as the loss goes; a loss that is
only a lower bound points up, to where it may be.
"""

from dataclasses import dataclass


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


@dataclass(frozen=True)
class Mark:
    """How a trial is marked."""

    path: str
    """SVG path from the place of the trial on."""
    colour: Colour
    verdict: str
    """What became of the trial, in a word."""
    legend: str


MARKS = {
    "accept": Mark("m-5-4h10l-5 9z", GOOD, "accepted", "accepted"),
    "refine": Mark("m0-4l4 4l-4 4l-4-4z", OPEN, "refined", "refined"),
    "reject": Mark("m0 0h.01", QUIET, "rejected", "rejected"),
    "bound": Mark("m-3 1.5l3-3.5l3 3.5", QUIET, "rejected", "rejected early: at least"),
}
"""By verdict; ``bound`` is a rejected trial whose loss is a lower bound."""
LINES = {"least": "least so far", "base": "untouched model"}
"""Lines beside the marks, and what they mean."""

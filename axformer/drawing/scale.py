"""The axes of a plot: the positions of values, and round values for labels."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from axformer.drawing.svg import words

LEFT = 66
"""Where plots begin."""
_TICK_ROOM = 60
"""Least distance between two numbers below a plot, in units."""
_CLOSE = 14
"""Numbers beside a plot closer than this to another label are left out."""
_STEPS = (1, 2, 2.5, 5, 10)
"""Possible steps between round values, times a power of ten."""


@dataclass(frozen=True)
class Scale:
    """A linear map of values from ``low`` to ``high`` to positions from ``start`` to ``stop``."""

    low: float
    high: float
    start: float
    stop: float

    def place(self, value: float) -> float:
        """The position of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)

    def ticks(self, most: int) -> list[float]:
        """Round values within the axis, no more than ``most``."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [count * step for count in range(first, last + 1)]


def labels(ticks: list[float]) -> list[str]:
    """Numbers with just enough digits to distinguish neighbours."""
    if len(ticks) < 2:
        return [f"{tick:.4g}" for tick in ticks]
    step = ticks[1] - ticks[0]
    digits = max(0, -math.floor(math.log10(step)))
    digits += abs(step * 10**digits - round(step * 10**digits)) > 1e-6
    return [f"{tick:,.{digits}f}" for tick in ticks]


def fitted(values: Sequence[float], least: float, margin: float, start: float, stop: float) -> Scale:
    """An axis that covers values.

    Args:
        values: at least one.
        least: what it spans at least, so that nearly equal values look equal.
        margin: room at both ends, as a share of the range.
        start: position of its low end.
        stop: position of its high end.
    """
    low, high = min(values), max(values)
    lacking = max(0.0, least - (high - low)) or (0.0 if high > low else 1.0)
    low, high = low - lacking / 2, high + lacking / 2
    room = margin * (high - low)
    return Scale(low - room, high + room, start, stop)


@dataclass(frozen=True)
class Axes:
    """Both axes of a plot, with lines across from ``left`` to ``right``."""

    across: Scale
    upright: Scale
    left: float
    right: float

    def grid(self, most: int, unlabelled: Collection[float] = ()) -> Iterator[str]:
        """Lines at round values of the vertical axis, with their numbers except near some positions."""
        ticks = self.upright.ticks(most)
        for tick, label in zip(ticks, labels(ticks), strict=True):
            place = self.upright.place(tick)
            yield f'<path class="grid" d="M{self.left:g} {place:.1f}H{self.right:g}"/>'
            if all(abs(place - other) > _CLOSE for other in unlabelled):
                yield words(self.left - 6, round(place + 4, 1), label, "faint", "end")

    def numbers(self, unit: str = "", *, are_counts: bool = False) -> Iterator[str]:
        """Numbers below the plot, as many as there is room for; whole ones if they count something."""
        ticks = self.across.ticks(max(2, int((self.right - self.left) / _TICK_ROOM)))
        ticks = [tick for tick in ticks if not are_counts or tick == int(tick)]
        for tick, label in zip(ticks, labels(ticks), strict=True):
            place = round(self.across.place(tick), 1)
            yield words(place, self.upright.start + 18, f"{label}{unit}", "faint", "middle")

    def name(self, across: str) -> str:
        """The name of the horizontal axis."""
        return words((self.left + self.right) / 2, self.upright.start + 38, across, "ink", "middle")

    def level(self, value: float, look: str = "", title: str = "") -> str:
        """A line across at a value, such as that of the untouched model."""
        path = f'<path class="base"{look} d="M{self.left:g} {self.upright.place(value):.1f}H{self.right:g}"'
        return f"{path}><title>{escape(title)}</title></path>" if title else f"{path}/>"

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The position of a point."""
        return self.across.place(x), self.upright.place(y)

"""An axis: the positions of values, and the round values for its labels."""

import math
from dataclasses import dataclass

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

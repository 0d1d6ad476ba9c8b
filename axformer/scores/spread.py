"""How figures of several runs lie: their mean, how far they are apart, and how sure the mean is."""

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev

from pydantic import BaseModel, ConfigDict, Field

CONFIDENCE = 0.95


class Spread(BaseModel):
    """A figure over several runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int = Field(description="Runs that have the figure.")
    mean: float
    deviation: float | None = Field(description="Standard deviation of a run (n - 1); null of a single one.")
    interval: tuple[float, float] | None = Field(
        description="The 95 % interval of the mean by Student's t, as if runs spread normally; null of a single one."
    )


def spread_of(values: Sequence[float]) -> Spread:
    """The spread of one value or more."""
    # Only here: SciPy takes some tenths of a second to import, and not every process that knows spreads makes one.
    from scipy.special import stdtrit

    middle = mean(values)
    if len(values) == 1:
        return Spread(count=1, mean=middle, deviation=None, interval=None)
    deviation = stdev(values)
    half = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * deviation / sqrt(len(values))
    return Spread(count=len(values), mean=middle, deviation=deviation, interval=(middle - half, middle + half))

"""How figures of several runs lie: their mean, how far they are apart, and how sure the mean is."""

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev

from axformer.wire.spread import Spread

CONFIDENCE = 0.95


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

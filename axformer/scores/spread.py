"""Spread of a figure over several runs: mean, standard deviation, and interval of the mean."""

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev

from axformer.wire.spread import Spread

CONFIDENCE = 0.95


def spread_of(values: Sequence[float]) -> Spread:
    """The spread of one value or more."""
    # Imported here because SciPy takes some tenths of a second to import, and most importers never compute a spread.
    from scipy.special import stdtrit

    middle = mean(values)
    if len(values) == 1:
        return Spread(count=1, mean=middle, deviation=None, interval=None)
    deviation = stdev(values)
    half = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * deviation / sqrt(len(values))
    return Spread(count=len(values), mean=middle, deviation=deviation, interval=(middle - half, middle + half))

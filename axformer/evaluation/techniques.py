"""What the fast evaluator does to be fast. Each can be left out, to measure what it is worth and to test it alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Techniques:
    """None of these changes a loss by more than rounding (ALGORITHM, "Exactness")."""

    prefixes: bool = True
    """Keep what comes before a change, and run only what comes after it."""
    shares: bool = True
    """Take a head's or a neuron group's share off what its block adds, instead of running the block without it."""
    tail: bool = True
    """Run what stands behind the last attention at the position that the head reads, only."""
    absorbed: bool = True
    """Where the head reads one position, compute no keys and values for the last attention, if it is plain."""
    packed: bool = True
    """On a CPU, pack weights for the kernels once, and compute activation functions within the products."""
    untouched: bool = True
    """Leave out samples that hard attention cannot change, because they have at most K tokens."""


ALL = Techniques()

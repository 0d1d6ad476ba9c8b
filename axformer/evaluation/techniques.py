"""The techniques that make the fast evaluator fast. Each can be switched off, to measure its effect and to test it alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Techniques:
    """Switches of the techniques. None of them changes a loss by more than rounding (ALGORITHM, "Exactness")."""

    prefixes: bool = True
    """Cache the inputs of blocks, and run only the blocks from the first change on."""
    shares: bool = True
    """Subtract the share of a head or a neuron group from its block's output, instead of running the block without it."""
    tail: bool = True
    """After the last attention, compute only the position that the head reads."""
    absorbed: bool = True
    """If the head reads one position, compute no keys and values for the last attention, provided that it is plain."""
    packed: bool = True
    """On a CPU, pack weights for the kernels once, and fuse activation functions into the products."""
    untouched: bool = True
    """Skip samples that hard attention cannot change, because they have at most K tokens."""


ALL = Techniques()

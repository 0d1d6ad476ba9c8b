"""Progress of a run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How many trials are done, and how many are known so far.

    ``known`` grows when the parts of a block are to be tried too. It falls to ``done`` when a pass stops at its target, and
    before a trade (``tolerance``) it falls by each block that need not be tried again.
    """

    done: int
    known: int
    seconds: float
    seconds_left: float | None
    """Known trials that remain, times the mean seconds of a trial so far; None until one is done."""

"""How far a run is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Trials done and known to come. Blocks still to be tried may add their parts, so ``known`` can grow; where a pass stops at
    its target, it falls to what was done, and before a trade (``tolerance``) it falls by each block that need not be tried
    again."""

    done: int
    known: int
    seconds: float
    seconds_left: float | None
    """Known trials left times the mean seconds of a trial so far; None until one is done."""

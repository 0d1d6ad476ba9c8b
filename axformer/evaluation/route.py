"""Which way a batch takes through a model under a plan on trial: from which block on, and where one position is enough."""

from dataclasses import dataclass

from axformer.evaluation.changes import Units
from axformer.plan.plan import Plan


@dataclass(frozen=True)
class Route:
    """How one plan is run. Blocks are counted from 0, two a layer; the number of blocks stands for the end of the layers."""

    runs: Plan
    """The plan whose layers are run."""
    first: int
    """The first block that is not as it is now."""
    known: int
    """The highest block whose input, as far as it is kept, is right for this plan."""
    tail: int
    """The first block of the tail, where one position is computed."""
    units: Units | None
    """Heads or neurons of block ``first`` whose share is taken off what that block adds; None if it is run cut."""


def route_of(now: Plan, then: Plan, first: int, tails: tuple[int, int], units: Units | None) -> Route:
    """The route of a plan on trial.

    What is kept of the model as it is now has all positions in blocks up to its tail, and one position behind it.

    - If the tail moves up, the trial needs all positions further up than they are kept, so it begins at the old tail at the
      latest.
    - If it moves down or stays, the trial can begin at its first change. Its tail begins no earlier than that, since what lies
      below is not run again, unless one position is all that is kept there.

    Args:
        now: the plan as it is.
        then: the plan on trial.
        first: a block up to which they do not differ.
        tails: the first block of the tail under each of them.
        units: what the trial takes off the output of a block, if that is all that it does.
    """
    tail_now, tail_then = tails
    runs = then if units is None else now
    if tail_then > tail_now:
        return Route(runs, first, known=min(first, tail_now), tail=tail_then, units=units)
    return Route(runs, first, known=first, tail=max(tail_then, min(first, tail_now)), units=units)

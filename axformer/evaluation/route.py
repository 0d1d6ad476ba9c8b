"""The route of a batch through a model under a plan on trial: the first block to run, and where one position is enough."""

from dataclasses import dataclass

from axformer.evaluation.changes import Units
from axformer.plan.plan import Plan


@dataclass(frozen=True)
class Route:
    """The route of a plan. Blocks are counted from 0, two per layer; the number of blocks stands for the end of the layers."""

    runs: Plan
    """The plan whose layers are run."""
    first: int
    """The first block that differs from the current plan."""
    known: int
    """The highest block whose cached input, if there is one, is valid for this plan."""
    tail: int
    """The first block of the tail, where only one position is computed."""
    units: Units | None
    """Heads or neurons of block ``first`` whose share is subtracted from the block's output; None if the cut block is run."""


def route_of(now: Plan, then: Plan, first: int, tails: tuple[int, int], units: Units | None) -> Route:
    """The route of a plan on trial.

    Cached inputs of the current plan have all positions in blocks up to its tail, and one position after it.

    - If the tail moves up, the trial needs all positions in blocks where only one is cached, so it begins at the old tail at
      the latest.
    - If the tail moves down or stays, the trial can begin at its first change. Its tail begins there at the earliest, since
      nothing below is run again, unless only one position is cached there.

    Args:
        now: the current plan.
        then: the plan on trial.
        first: a block below which the plans do not differ.
        tails: the first block of the tail under each plan.
        units: the units whose share the trial subtracts from a block's output, if that is its only change.
    """
    tail_now, tail_then = tails
    runs = then if units is None else now
    if tail_then > tail_now:
        return Route(runs, first, known=min(first, tail_now), tail=tail_then, units=units)
    return Route(runs, first, known=first, tail=max(tail_then, min(first, tail_now)), units=units)

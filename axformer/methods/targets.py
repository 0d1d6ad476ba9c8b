"""How far a plan has come on the way to a pass's targets, and which of several passes has come best."""

from collections.abc import Callable
from dataclasses import dataclass

from axformer.config import RunConfig
from axformer.plan.plan import Plan

Rank = tuple[float, ...]
"""How a pass stands beside others, the best least."""


@dataclass(frozen=True)
class Goal:
    """How far a pass goes; without any part it goes to its end."""

    size: float | None = None
    """Share of the parameters that may be left."""
    speedup: float | None = None
    """How many times fewer operations there should be."""


def is_met(goal: Goal, size: float, speedup: float) -> bool:
    """Whether a pass may stop: all that its goal names is reached, and it names something.

    Args:
        size: share of the parameters that is left.
        speedup: operations of the untouched model for each that is left.
    """
    wanted = []
    if goal.size is not None:
        wanted.append(size <= goal.size)
    if goal.speedup is not None:
        wanted.append(speedup >= goal.speedup)
    return bool(wanted) and all(wanted)


@dataclass(frozen=True)
class SpeedEstimate:
    """How fast a plan is, counted from shapes (see :mod:`axformer.model.operations`)."""

    operations: int
    """Those that are left, of one look at the data."""
    estimated_speedup: float
    """Operations of the untouched model for each that is left."""


@dataclass(frozen=True)
class Targets:
    """What a pass is to reach, and how that is counted."""

    config: RunConfig
    full: Plan
    """The plan that keeps everything."""
    parameters: Callable[[Plan], int]
    """Those that a plan leaves."""
    operations: Callable[[Plan], int]
    """Those that a plan leaves, of one look at the data."""
    encoder_parameters: Callable[[Plan], int]
    """Those of the parameters that are in the transformer layers."""
    encoder_operations: Callable[[Plan], int]
    """Those of the operations that the transformer layers take."""

    def size(self, plan: Plan) -> float:
        """Share of the parameters that is left."""
        return self.parameters(plan) / self.parameters(self.full)

    def encoder_size(self, plan: Plan) -> float:
        """Share of the encoder's parameters that is left."""
        return self.encoder_parameters(plan) / self.encoder_parameters(self.full)

    def speedup(self, plan: Plan) -> float:
        """Operations of the untouched model for each that is left."""
        return self.operations(self.full) / max(1, self.operations(plan))

    def estimate(self, plan: Plan) -> SpeedEstimate:
        """How fast a plan is."""
        return SpeedEstimate(self.operations(plan), self.speedup(plan))

    def is_reached(self, plan: Plan) -> bool:
        """Whether the pass may stop here."""
        goal = Goal(self.config.target_size, self.config.target_speedup)
        return is_met(goal, self.size(plan), self.speedup(plan))

    def rank(self, plan: Plan, loss: float) -> Rank:
        """How a pass ranks beside others, the best least: those that reached the target come first. Among them, where
        the loss may go up, the smallest; else, and among equals, the one with the least loss."""
        size = self.parameters(plan) if self.config.loss_limit is not None else 0
        return (not self.is_reached(plan), size, loss)

    def note(self, plan: Plan) -> str | None:
        """What a pass that is over says of its targets; None where it has none."""
        if self.config.target_size is None and self.config.target_speedup is None:
            return None
        reached = "the target was reached" if self.is_reached(plan) else "the target was not reached"
        return (
            f"{reached}: {self.size(plan):.1%} of the parameters are left ({self.encoder_size(plan):.1%} of the encoder's), "
            f"and {self.speedup(plan):.2f} times fewer operations"
        )

"""Whether a plan reaches a pass's targets."""

from collections.abc import Callable
from dataclasses import dataclass

from axformer.config import RunConfig
from axformer.plan.plan import Plan

_MOST_DECIMALS = 9
"""Decimals with which even a target that is missed by one operation of a billion is told from what was reached."""


@dataclass(frozen=True)
class Targets:
    """The targets of a pass, and how they are counted."""

    config: RunConfig
    full: Plan
    """The plan that keeps everything."""
    parameters: Callable[[Plan], int]
    """Counts the parameters that a plan leaves."""
    operations: Callable[[Plan], int]
    """Counts the operations that a plan leaves, for one forward pass over the data."""
    encoder_parameters: Callable[[Plan], int]
    """Counts the parameters of the transformer layers alone."""
    encoder_operations: Callable[[Plan], int]
    """Counts the operations of the transformer layers alone."""
    is_chosen: bool = False
    """Whether someone chose the plan from the path, whatever the run was asked for."""

    @property
    def is_wished(self) -> bool:
        """Whether a size or a speed was asked for."""
        return self.config.target_size is not None or self.config.target_speedup is not None

    def size(self, plan: Plan) -> float:
        """Share of the parameters that remains."""
        return self.parameters(plan) / self.parameters(self.full)

    def encoder_size(self, plan: Plan) -> float:
        """Share of the encoder's parameters that remains."""
        return self.encoder_parameters(plan) / self.encoder_parameters(self.full)

    def speedup(self, plan: Plan) -> float:
        """Operations of the untouched model divided by those that remain."""
        return self.operations(self.full) / max(1, self.operations(plan))

    def share_for(self, speedup: float) -> float:
        """Share of the encoder's operations that may be left where so many times fewer are wanted in all; below 0 if what lies
        outside of the encoder takes more than that."""
        encoder = self.encoder_operations(self.full)
        outside = self.operations(self.full) - encoder
        return (self.operations(self.full) / speedup - outside) / encoder

    def is_reached(self, plan: Plan) -> bool:
        """Whether a pass with this plan may stop: there are targets, and all are reached. A chosen plan is what was wanted."""
        if self.is_chosen:
            return True
        wanted, config = [], self.config
        if config.target_size is not None:
            wanted.append(self.size(plan) <= config.target_size)
        if config.target_speedup is not None:
            wanted.append(self.speedup(plan) >= config.target_speedup)
        return bool(wanted) and all(wanted)

    def note(self, plan: Plan) -> str | None:
        """Say whether a finished pass reached its targets, or that its plan was chosen; None if it has no targets."""
        if self.is_chosen:
            told = "this model was chosen from the path"
        elif not self.is_wished:
            return None
        elif self.config.asks_for_time:
            told = "how fast it is, is measured at the end"
        else:
            told = "the target was reached" if self.is_reached(plan) else "the target was not reached"
        wanted, size, speedup = self.config.target_size, self.size(plan), self.speedup(plan)
        in_percent = _told(100 * size, None if wanted is None or size <= wanted else 100 * wanted, 1)
        wanted = self.config.target_speedup
        times = _told(speedup, None if wanted is None or speedup >= wanted else wanted, 2)
        return (
            f"{told}: {in_percent}% of the parameters are left ({self.encoder_size(plan):.1%} of the encoder's), "
            f"and {times} times fewer operations"
        )


def _told(value: float, missed: float | None, decimals: int) -> str:
    """A figure with so many decimals, or more if it takes more to tell it from the target that it misses."""
    while missed is not None and decimals < _MOST_DECIMALS and f"{value:.{decimals}f}" == f"{missed:.{decimals}f}":
        decimals += 1
    return f"{value:.{decimals}f}"

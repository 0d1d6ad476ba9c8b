"""What a run's knobs and trials alone say about it: its progress and its longest trace. Imports no PyTorch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from axformer.config import RunConfig
from axformer.methods.axformer.acceptance import refused_by_safeguard
from axformer.methods.axformer.progress import PassMeter, longest_trace
from axformer.methods.progress import PlanMeter, Progress
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial


class Meter(Protocol):
    """Computes the progress of a run as its trials arrive, at a cost that does not grow with their number."""

    def add(self, trials: Iterable[Trial]) -> None:
        """Add the next trials."""

    def progress(self, *, ended: bool = False) -> Progress:
        """The progress of the run.

        Args:
            ended: whether the run has ended. Its trials alone cannot say that if it may stop at a target.
        """


@dataclass(frozen=True)
class Outline:
    """The part of a method that needs no model."""

    meter: Callable[[Dimensions, Any], Meter]
    """Makes the meter of a run that has no trials yet."""
    longest_trace: Callable[[Dimensions, Any], int]
    """An upper bound on the number of trials of a run."""
    refused_by_safeguard: Callable[[Sequence[Trial], Any], int | None]
    """How many trials of a trace only the safeguard rejected; None without a safeguard."""
    trains_each: Callable[[Any], bool] = lambda _: False
    """Whether the model of every trial is trained, where training data is given, and not only the one that is kept."""


def _of_plans(
    longest: Callable[[Dimensions, Any], int], *, trains_each: Callable[[Any], bool] = lambda _: False
) -> Outline:
    """The outline of a method whose trials hold whole plans."""
    return Outline(
        meter=lambda dimensions, config: PlanMeter(longest(dimensions, config)),
        longest_trace=longest,
        refused_by_safeguard=lambda _trace, _config: None,
        trains_each=trains_each,
    )


OUTLINES: Mapping[str, Outline] = {
    "axformer": Outline(PassMeter, longest_trace, refused_by_safeguard),
    "compress": _of_plans(lambda _, config: 1 + len(config.budgets) + config.may_go_further),
    "layers": _of_plans(
        lambda dimensions, config: 2 if config.tries_one else dimensions.layers, trains_each=lambda _: True
    ),
    "rank": _of_plans(lambda _, config: 1 + len(config.shares), trains_each=lambda config: config.finetune_each > 0),
}
"""The outlines by method name."""


def outline_of(config: RunConfig) -> Outline:
    """The outline of the method that a config names."""
    return OUTLINES[config.method]


def progress_of(trials: Iterable[Trial], dimensions: Dimensions, config: RunConfig, *, ended: bool = False) -> Progress:
    """The progress of a run with these trials."""
    meter = outline_of(config).meter(dimensions, config)
    meter.add(trials)
    return meter.progress(ended=ended)

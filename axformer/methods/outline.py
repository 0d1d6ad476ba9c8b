"""What is known of a method's run from its knobs and its trials alone: which passes it has, how far it is. Without PyTorch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from axformer.config import RunConfig
from axformer.methods.axformer.acceptance import refused_by_safeguard
from axformer.methods.axformer.orders import pass_configs
from axformer.methods.axformer.progress import PassMeter, longest_trace
from axformer.methods.compress.progress import BudgetMeter
from axformer.methods.compress.progress import longest_trace as longest_compression
from axformer.methods.progress import Progress
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial


class Meter(Protocol):
    """Tells how far a run is while its trials come. What it costs to tell does not grow with them."""

    def add(self, trials: Iterable[Trial]) -> None:
        """Take the next trials."""

    def progress(self, *, ended: bool = False) -> Progress:
        """How far the run is.

        Args:
            ended: whether it is over, which its trials do not say where it may stop at a target.
        """


@dataclass(frozen=True)
class Outline:
    """The part of a method that needs no model."""

    passes: Callable[[Any], Sequence[Any]]
    """The config of each pass that a config asks for. Each pass has a trace of its own; the best is kept."""
    meter: Callable[[Dimensions, Any], Meter]
    """A meter before the first trial."""
    longest_trace: Callable[[Dimensions, Any], int]
    """Trials that a run makes at most."""
    refused_by_safeguard: Callable[[Sequence[Trial], Any], int | None]
    """Trials of a trace that were not accepted because of a safeguard alone; None where there is none."""


OUTLINES: Mapping[str, Outline] = {
    "axformer": Outline(pass_configs, PassMeter, longest_trace, refused_by_safeguard),
    "compress": Outline(lambda config: [config], BudgetMeter, longest_compression, lambda _trace, _config: None),
}
"""By the name of the method."""


def outline_of(config: RunConfig) -> Outline:
    """The outline of the method that a config names."""
    return OUTLINES[config.method]


def progress_of(trials: Iterable[Trial], dimensions: Dimensions, config: RunConfig, *, ended: bool = False) -> Progress:
    """How far a run with these trials is."""
    meter = outline_of(config).meter(dimensions, config)
    meter.add(trials)
    return meter.progress(ended=ended)

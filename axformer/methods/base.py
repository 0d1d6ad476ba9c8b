"""The interface of a pruning method: it yields its trials one by one.

The plan is a function of the trace (:func:`plan_of`). Code that stores, resumes, shows, exports or publishes trials therefore
need not know which method yielded them.
"""

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.evaluation.untouched import Untouched
from axformer.intake.checkpoint import Checkpoint
from axformer.methods.targets import Targets
from axformer.model.compact import compact
from axformer.plan.elements import Dimensions
from axformer.plan.path import points_of
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.repair.refit import Fits, apply_refit
from axformer.wire.steps import OnStep, ignore


@dataclass(frozen=True)
class Ground:
    """What a method gets to work with."""

    checkpoint: Checkpoint
    samples: Samples
    """The samples that trials are decided on."""
    config: Any
    """The knobs of the run, as the method's own config class."""
    targets: Targets
    """When the run may stop; counts parameters and operations."""
    calibration: Samples
    """The calibration samples, which weights are fitted on; their labels are not used."""
    untouched: Untouched
    """Measures losses on the deciding samples, and has measured the untouched model if the run has looked at it."""
    refits: Fits | None = None
    """Refits the weights that stay; None if they are left unchanged."""
    clock: Callable[[], float] = field(default=time.monotonic)
    """Returns seconds since an arbitrary start."""
    check_cancelled: Callable[[], None] = field(default=lambda: None)
    """Called from time to time during long trials; an exception that it raises ends the run."""

    on_step: OnStep = field(default=ignore)
    """Takes reports of what is done between two trials, where that takes long."""

    @property
    def dimensions(self) -> Dimensions:
        """Dimensions of the model."""
        return self.checkpoint.dimensions

    def model_of(self, plan: Plan) -> Any:
        """Build the smaller model of a plan in float32, with refitted weights if the run has a refit."""
        small = compact(self.checkpoint.model, self.checkpoint.architecture, plan)
        if self.refits is not None:
            apply_refit(small, self.checkpoint.architecture, self.refits.of(plan, self.check_cancelled))
        return small

    @property
    def fitted_model_of(self) -> Callable[[Plan], Any] | None:
        """Builds the model of a plan if its weights differ from the checkpoint's; None if the plan says it all."""
        return None if self.refits is None else self.model_of


class Method(Protocol):
    """A pruning method. Its :class:`axformer.methods.outline.Outline` is the part that needs no model."""

    name: str
    """Its value of the knob ``method``."""

    @property
    def fits(self) -> type[Fits]:
        """What fits the weights that its plans leave, where the knobs ask for that."""

    def check(self, config: Any, dimensions: Dimensions) -> None:
        """Check before any work that the knobs fit the model.

        Raises:
            ConfigError: they do not.
        """

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Run the method.

        Args:
            ground: the model, the data and the config.
            replay: the trials that the same run yielded before it was stopped. They are yielded again without being
                evaluated, and the run continues as if it had never stopped.

        Yields:
            Every trial in order; each pass begins with the untouched model.
        """


def plan_of(trials: Iterable[Trial], dimensions: Dimensions, config: RunConfig) -> Plan:
    """The plan that a trace leads to: all its accepted trials, applied in order."""
    points = points_of(list(trials), dimensions, config.attention_kept, keeps_bias=config.is_refitted)
    return points[-1].plan if points else Plan.full(dimensions)

"""What a method is: a way to a smaller model that says what it tries, trial by trial.

The plan is a function of the trace (:func:`plan_of`), so whatever a method yields can be stored, resumed, shown, exported at
any point and published without a word of the method in those places.
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


@dataclass(frozen=True)
class Ground:
    """What a method works on."""

    checkpoint: Checkpoint
    samples: Samples
    """Those that decide."""
    config: Any
    """The knobs of the run, of the method's own kind."""
    targets: Targets
    """Where the run may stop, and what counts parameters and operations."""
    calibration: Samples
    """Those that weights are fitted on; their labels are not looked at."""
    untouched: Untouched
    """What measures losses on the samples that decide, and has measured the untouched model where somebody has looked at it."""
    refits: Fits | None = None
    """Fits the weights that plans leave; None where plans leave weights as they are."""
    clock: Callable[[], float] = field(default=time.monotonic)
    """Seconds, from any start."""
    check_cancelled: Callable[[], None] = field(default=lambda: None)
    """Called now and then where a trial takes long; what it raises ends the run."""

    @property
    def dimensions(self) -> Dimensions:
        """Of the model."""
        return self.checkpoint.dimensions

    def model_of(self, plan: Plan) -> Any:
        """The physically smaller model of a plan, its weights fitted if that is asked for, in float32."""
        small = compact(self.checkpoint.model, self.checkpoint.architecture, plan)
        if self.refits is not None:
            apply_refit(small, self.checkpoint.architecture, self.refits.of(plan, self.check_cancelled))
        return small

    @property
    def fitted_model_of(self) -> Callable[[Plan], Any] | None:
        """Gives the model of a plan where plans alone do not say what it computes; None where they do."""
        return None if self.refits is None else self.model_of


class Method(Protocol):
    """A way to a smaller model. What needs no model of it is its :class:`axformer.methods.outline.Outline`."""

    name: str
    """As the knob ``method`` has it."""

    @property
    def fits(self) -> type[Fits]:
        """What fits the weights that its plans leave, where the knobs ask for that."""

    def check(self, config: Any, dimensions: Dimensions) -> None:
        """Make sure that the knobs fit a model before any work.

        Raises:
            ConfigError: they do not.
        """

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Run the method.

        Args:
            ground: what it works on.
            replay: the first trials of the same run, as it yielded them before it was stopped; they are yielded again without
                being evaluated, and the run goes on as if it had never stopped.

        Yields:
            Every trial in order, each pass beginning with the untouched model.
        """


def plan_of(trials: Iterable[Trial], dimensions: Dimensions, config: RunConfig) -> Plan:
    """The plan that the trace of a pass leads to: everything accepted in it, carried out in order."""
    points = points_of(list(trials), dimensions, config.attention_kept, keeps_bias=config.is_refitted)
    return points[-1].plan if points else Plan.full(dimensions)

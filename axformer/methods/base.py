"""The interface of a pruning method: it yields its trials one by one.

The plan is a function of the trace (:func:`plan_of`). Code that stores, resumes, shows, exports or publishes trials therefore
need not know which method yielded them.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from pkgutil import resolve_name
from typing import Any, ClassVar

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.errors import PlanError
from axformer.evaluation.untouched import Untouched
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.targets import Targets
from axformer.model.compact import compact
from axformer.model.operations import Operations
from axformer.model.parameters import ParameterCount
from axformer.plan.blocks import all_blocks
from axformer.plan.elements import Dimensions
from axformer.plan.path import points_of
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.repair.recovery import Recovery
from axformer.repair.refit import Fits, Refits, apply_refit
from axformer.repair.training import Training
from axformer.scores.importance import ScoreUnits
from axformer.scores.measured import Measured
from axformer.surroundings import Surroundings
from axformer.wire.steps import Counter, StepName


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
    recovery: Recovery | None = None
    """Trains the model of every plan, for methods that do; None if models are only cut and refitted."""
    score: ScoreUnits | None = None
    """Scores heads and neurons, where a program passed it in."""
    is_of_use: Callable[[Plan, Measured], bool] | None = None
    """Whether the report would not call the model of a plan useless, given the model on the deciding rows; None where only the
    finished run can tell."""
    surroundings: Surroundings = field(default_factory=Surroundings)
    """Where the run happens."""

    @property
    def dimensions(self) -> Dimensions:
        """Dimensions of the model."""
        return self.checkpoint.dimensions

    def model_of(self, plan: Plan) -> Any:
        """Build the smaller model of a plan in float32, with the weights that the run has for it."""
        if self.recovery is not None and plan != Plan.full(self.dimensions):
            return self.recovery.model_of(plan, self.surroundings)[0]
        small = compact(self.checkpoint.model, self.checkpoint.architecture, plan)
        if self.refits is not None:
            counter = Counter(StepName.REFIT, len(all_blocks(len(plan.layers))), self.surroundings.on_step)
            parts_done = chain([0], repeat(1))  # a block is done when the next one begins

            def next_block() -> None:
                self.surroundings.check_cancelled()
                counter.advance(next(parts_done))

            apply_refit(small, self.checkpoint.architecture, plan, self.refits.of(plan, next_block))
        return small

    @property
    def fitted_model_of(self) -> Callable[[Plan], Any] | None:
        """Builds the model of a plan if its weights differ from the checkpoint's; None if the plan says it all."""
        return None if self.refits is None and self.recovery is None else self.model_of


class Method:
    """A pruning method. Its config class describes it (:class:`axformer.config.common.About`) and checks its knobs."""

    fits: ClassVar[type[Fits]] = Refits
    """What fits the weights that its plans leave, where the knobs ask for that."""

    def check(self, config: Any, checkpoint: Checkpoint) -> None:
        """Check before any work that the knobs fit the model.

        Raises:
            ConfigError: they do not.
        """

    def recovery(self, ground: Ground, training: Training, deciding: DataSet) -> Recovery | None:  # noqa: ARG002 - for methods
        """What trains the model of every plan, given a ground without it; None where only the kept model is trained."""
        return None

    def files(self, ground: Ground, trace: Sequence[Trial]) -> Mapping[str, str]:  # noqa: ARG002 - for methods
        """The contents of the files that the method adds to a result, by name; they follow from the ground and the trace."""
        return {}

    def notes(self, config: Any, samples: Samples, *, is_trained: bool) -> Iterable[str]:  # noqa: ARG002 - for methods
        """Notes for the user before the run, given the samples that decide and whether there is training data."""
        return ()

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Run the method.

        Args:
            ground: the model, the data and the config.
            replay: the trials that the same run yielded before it was stopped. They are yielded again without being
                evaluated, and the run continues as if it had never stopped.

        Yields:
            Every trial in order; each pass begins with the untouched model.
        """
        raise NotImplementedError


def made_by(kind: type[RunConfig]) -> Method:
    """The method of a config class."""
    method = resolve_name(kind.about.method)()
    assert isinstance(method, Method), "its description names it"
    return method


def targets_of(checkpoint: Checkpoint, config: RunConfig, samples: Samples) -> Targets:
    """The targets of a run, with operations counted at the lengths of these samples."""
    model, architecture, lengths = checkpoint.model, checkpoint.architecture, samples.lengths
    parameters = ParameterCount(model, architecture)
    operations = Operations(model, architecture, pooled=checkpoint.task.pooled, lengths=lengths)
    counts = (parameters.left, operations.left, parameters.encoder, operations.encoder)
    return Targets(config, Plan.full(checkpoint.dimensions), *counts)


def plan_of(trials: Iterable[Trial], dimensions: Dimensions, config: RunConfig) -> Plan:
    """The plan that a trace leads to: all its accepted trials, applied in order."""
    points = points_of(list(trials), dimensions, config.attention_kept, keeps_bias=config.needs.fitting)
    return points[-1].plan if points else Plan.full(dimensions)


class Replay:
    """Hands out the stored trials one by one, which a resumed run takes over without evaluating them again; :attr:`seq` goes on
    counting after the last."""

    def __init__(self, trials: Sequence[Trial] = ()) -> None:
        """Hand out the trials that the same pass yielded before it was stopped."""
        self._trials = trials
        self.seq = 0
        """Number of the next trial."""

    @property
    def seconds(self) -> float:
        """Seconds that the pass had run when it was stopped."""
        return self._trials[-1].seconds if self._trials else 0.0

    @property
    def upcoming(self) -> Trial | None:
        """The next stored trial; None after the last."""
        return self._trials[self.seq] if self.seq < len(self._trials) else None

    def is_at(self, element: str) -> bool:
        """Whether the next stored trial is of this element."""
        return self.upcoming is not None and self.upcoming.element == element

    def next(self, element: str | None) -> Trial | None:
        """Take the next stored trial; None after the last.

        Args:
            element: the element that the pass tries next; None for the untouched model.

        Raises:
            PlanError: the stored trial is of another element, so the trace belongs to another pass.
        """
        trial = self.upcoming
        if trial is None:
            return None
        if trial.element != element or trial.seq != self.seq:
            raise PlanError(
                f"the stored trace is not one of this pass: its trial {self.seq} is {trial.element}, not {element}"
            )
        self.seq += 1
        return trial

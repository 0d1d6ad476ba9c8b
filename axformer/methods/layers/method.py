"""Layer dropping as a method: fewer and fewer layers, each number of them a trial, and what is left is trained again.

Sajjad and others, *On the Effect of Dropping Layers of Pre-trained Transformer Models* (2023). The weights of each model are a
function of the checkpoint, the plan, the training data and the knobs (:mod:`axformer.repair.recovery`), so a resumed run
goes on with the same models.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from axformer.config.layers import LayersConfig, Schedule, Strategy
from axformer.data.batches import Samples
from axformer.errors import ConfigError, PlanError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.base import Ground, Method, Replay
from axformer.methods.layers.scores import aggregation, contribution, variance
from axformer.methods.layers.strategies import ORDERS, above, explicit, first, highest_first, lowest_first
from axformer.methods.whole_plans import WholePlans
from axformer.plan.elements import depth
from axformer.plan.plan import Plan
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.repair.recovery import Origin, Recovery, check_own_weights
from axformer.repair.training import Training
from axformer.scores.measured import Measured
from axformer.scores.task_tests import is_within
from axformer.wire.steps import Counter, StepName

LOW, HIGH = 0.9, 0.95
"""The thresholds that the paper tried (section 5)."""


class Layers(Method):
    """See :class:`axformer.methods.base.Method`."""

    def recovery(self, ground: Ground, training: Training, deciding: DataSet) -> Recovery:
        checkpoint = ground.checkpoint
        return Recovery(checkpoint, training, deciding, LayerOrigins(checkpoint, training, ground.config.schedule))

    def notes(self, config: LayersConfig, samples: Samples, *, is_trained: bool) -> Iterator[str]:  # noqa: ARG002
        if not is_trained:
            yield (
                "there is no training data, so what is left without the dropped layers is not trained again, and its answers "
                "usually suffer much; give --train, for example the rows that the model was fine-tuned on"
            )
        if config.threshold is not None and not LOW <= config.threshold <= HIGH:
            yield (
                f"threshold={config.threshold:g} is outside of what the paper tried, {LOW:g} to {HIGH:g}: above it finds no "
                "layer, below more than half of them"
            )

    def check(self, config: LayersConfig, checkpoint: Checkpoint) -> None:
        """Check that the model has as many layers as are to be dropped, and one more."""
        layers = checkpoint.dimensions.layers
        if layers < 2:
            raise ConfigError(f"method={config.method}: the model has {layers} layer, and one must stay")
        chosen = explicit(config.layers, layers)
        if len(chosen) == layers:
            raise ConfigError(f"knob layers: all {layers} layers of the model are named, and one must stay")
        if config.drop is not None:
            names = config.strategy in (Strategy.EXPLICIT, *ORDERS)
            order = (chosen or ORDERS[config.strategy](layers)) if names else list(range(layers))
            first(order, config.drop, layers)

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Yield the untouched model, then a trial for every number of dropped layers, up to the first that is rejected."""
        run = _Run(ground, Replay(replay))
        yield run.plans.base()
        for count in run.counts():
            trial = run.drop(count)
            yield trial
            assert trial.plan is not None, "the trial of a plan holds it"
            if trial.verdict is Verdict.REJECT or ground.targets.is_reached(Plan(layers=trial.plan)):
                return
        run.plans.end()


class _Run:
    """The state of one run: the order in which layers leave, as far as it is known."""

    def __init__(self, ground: Ground, replay: Replay) -> None:
        self._ground = ground
        self.plans = WholePlans(ground, replay, Phase.LAYER_DROP)
        self._full = Plan.full(ground.dimensions)
        self._order = order_of(ground)
        if ground.recovery is not None and isinstance(ground.recovery.origins, LayerOrigins):
            ground.recovery.origins.order = self._order

    def counts(self) -> Sequence[int]:
        """The numbers of dropped layers that are tried, ascending.

        Raises:
            ConfigError: no layer, or every layer, lies above the threshold.
        """
        config, layers = self._ground.config, len(self._full.layers)
        if config.drop is not None:
            return [config.drop]
        if config.threshold is None:
            return range(1, min(len(self._order), layers - 1) + 1)
        if not 0 < len(self._order) < layers:
            raise ConfigError(
                f"threshold={config.threshold:g}: {len(self._order)} of the model's {layers} layers change their input less "
                "than that; name another threshold, or how many layers to drop"
            )
        return [len(self._order)]

    def drop(self, count: int) -> Trial:
        """The trial of the model without the first layers of the order."""
        element = depth(len(self._full.layers) - count)
        return self.plans.stored(element) or self.plans.tried(element, self._plan(count), self._judge)

    def _plan(self, count: int) -> Plan:
        plan, checkpoint = (
            self._full.dropping(first(self._order, count, len(self._full.layers))),
            self._ground.checkpoint,
        )
        checkpoint.architecture.check_droppable(checkpoint.model.config, plan)
        return plan

    def _judge(self, measured: Measured) -> Verdict:
        points = self._ground.config.within_points
        if points is None:
            return Verdict.ACCEPT
        fall = self.plans.metric(self.plans.untouched) - self.plans.metric(measured)
        return Verdict.ACCEPT if is_within(fall, points) else Verdict.REJECT


def order_of(ground: Ground) -> list[int]:
    """The layers that may leave, in the order in which they do; a function of the untouched model, the data and the knobs."""
    config, checkpoint = ground.config, ground.checkpoint
    model, architecture, layers = checkpoint.model, checkpoint.architecture, ground.dimensions.layers
    match config.strategy:
        case Strategy.EXPLICIT:
            return explicit(config.layers, layers)
        case Strategy.PARAMETER_AGGREGATION:
            return lowest_first(aggregation(model, architecture))
        case Strategy.PARAMETER_VARIANCE:
            return lowest_first(variance(model, architecture))
        case Strategy.CONTRIBUTION:
            scores = contribution(model, architecture, ground.samples, ground.surroundings.check_cancelled)
            return highest_first(scores) if config.threshold is None else above(scores, config.threshold)
        case Strategy.GREEDY:
            return _greedy(ground)
    return ORDERS[config.strategy](layers)


def _greedy(ground: Ground) -> list[int]:
    """One after the other the layer without which the loss is lowest; of equal losses the higher layer first."""
    full, order = Plan.full(ground.dimensions), list[int]()
    most = ground.config.drop or ground.dimensions.layers - 1
    models = sum(ground.dimensions.layers - done for done in range(most))
    counter = Counter(StepName.RANKING, models, ground.surroundings.on_step)
    with ground.untouched.evaluator(recorded=False) as evaluator:
        for _ in range(most):
            losses: dict[int, float] = {}
            for index in set(range(ground.dimensions.layers)) - set(order):
                ground.surroundings.check_cancelled()
                counter.advance()
                plan = full.dropping([*order, index])
                if _is_droppable(ground, plan):
                    losses[index] = float(evaluator.losses(plan).mean())
            if not losses:
                break
            order.append(min(losses, key=lambda index: (losses[index], -index)))
    return order


def _is_droppable(ground: Ground, plan: Plan) -> bool:
    try:
        ground.checkpoint.architecture.check_droppable(ground.checkpoint.model.config, plan)
    except PlanError:
        return False
    return True


GRADUAL_EPOCHS = 2
"""Epochs before each layer leaves, with ``schedule=gradual`` (section 6.5)."""


class LayerOrigins:
    """The origins of one run's plans; see :data:`axformer.repair.recovery.Origins`.

    Layers of a base model with a new head are dropped before anything is trained, as in the paper. The untouched model of the
    run is then what ``finetune_first`` would train the base model to.
    """

    def __init__(self, checkpoint: Checkpoint, training: Training, schedule: Schedule) -> None:
        """Begin before the order of the layers is known.

        Raises:
            ConfigError: the schedule trains the model before layers leave, and the layers share their weights.
        """
        if schedule is not Schedule.AT_ONCE:
            check_own_weights(checkpoint, f"schedule={schedule.value}", "use schedule=at_once")
        self._checkpoint = checkpoint
        self._training = training
        self._schedule = schedule
        self.order: Sequence[int] = ()
        """The layers in the order in which they leave; ``schedule=gradual`` needs it."""

    def __call__(self, plan: Plan) -> Origin:
        """The origin of a plan that drops layers, or of the full one."""
        base, schedule = self._training.base or self._checkpoint, self._schedule
        is_base = self._training.base is not None
        origin = f" from {base.sha256}" if is_base else ""
        if schedule is Schedule.AT_ONCE:
            return Origin(base.model, origin)
        if is_base and schedule is Schedule.FINETUNE_FIRST:
            return Origin(self._checkpoint.model, schedule.value)
        history, full = schedule.value + origin, Plan.full(self._checkpoint.dimensions)
        if not plan.dropped:
            return Origin(base.model, history)
        if schedule is Schedule.FINETUNE_FIRST_FROZEN:
            frozen = sorted({*self._training.settings.frozen_layers(), *plan.dropped})
            return Origin(base.model, history, full, self._with(freeze=",".join(map(str, frozen))))
        if schedule is Schedule.GRADUAL:
            gone = self.order[: len(plan.dropped)]
            history += f" {','.join(map(str, gone))}"
            return Origin(base.model, history, full.dropping(gone[:-1]), self._with(epochs=GRADUAL_EPOCHS))
        return Origin(base.model, history, full)

    def _with(self, **settings: Any) -> Training:
        return replace(self._training, settings=self._training.settings.model_copy(update=settings))

"""When layers leave, and what the training of a model with fewer of them begins with (sections 4 and 6.5 of the paper)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from axformer.config.layers import Schedule
from axformer.intake.checkpoint import Checkpoint
from axformer.plan.plan import Plan
from axformer.repair.recovery import Origin, check_own_weights
from axformer.repair.training import Training

GRADUAL_EPOCHS = 2
"""Epochs before each layer leaves, with ``schedule=gradual`` (section 6.5)."""


class LayerOrigins:
    """The origins of one run's plans; see :class:`axformer.repair.recovery.Origins`.

    Layers of a base model with a new head are dropped before anything is trained, as in the paper. The untouched model of the
    run is then what ``finetune_first`` would train the base model to.
    """

    def __init__(self, checkpoint: Checkpoint, training: Training, schedule: Schedule) -> None:
        """
        Args:
            checkpoint: the untouched model.
            training: the training of every model.
            schedule: when layers are dropped.

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

    def of(self, plan: Plan) -> Origin:
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

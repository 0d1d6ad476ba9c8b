"""Train the models of several plans, each from a checkpoint with dropped layers, by a schedule.

The weights of a plan's model are a function of the checkpoint, the plan, the training and the schedule alone. The state of
every training lies under its own name, so that each is done once, and one that was interrupted continues.
"""

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from axformer.architectures.base import Architecture
from axformer.config.layers import Schedule
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.compact import compact
from axformer.model.number_format import cast, computing_in
from axformer.plan.plan import Plan
from axformer.repair.base import Repaired, Surroundings
from axformer.repair.losses import Course
from axformer.repair.refit import can_refit
from axformer.repair.training import Training, record_of, train
from axformer.scores.sets import Sets, scores_of

GRADUAL_EPOCHS = 2
"""Epochs before each layer leaves, with ``schedule=gradual`` (section 6.5)."""


class Recovery:
    """Trains the models of plans that drop layers; see :mod:`axformer.config.layers` for the schedules."""

    def __init__(self, checkpoint: Checkpoint, training: Training, deciding: DataSet, schedule: Schedule) -> None:
        """
        Args:
            checkpoint: the untouched model, which is not changed.
            training: the training rows and the settings.
            deciding: the deciding rows, on which losses are measured after each epoch.
            schedule: when layers are dropped.

        Raises:
            ConfigError: the schedule trains the model before layers leave, and the layers share their weights.
        """
        if schedule is not Schedule.AT_ONCE and not can_refit(checkpoint.model, checkpoint.architecture):
            raise ConfigError(
                f"schedule={schedule.value}: the layers of models of type '{checkpoint.architecture.model_type}' share their "
                "weights, so none can be trained and then left out; use schedule=at_once"
            )
        self._checkpoint = checkpoint
        self._training = training
        self._deciding = deciding
        self._schedule = schedule
        self._base = training.base or checkpoint
        self._own: Path | None = None
        self.order: Sequence[int] = ()
        """The layers in the order in which they leave; ``schedule=gradual`` needs it."""

    def model_of(self, plan: Plan, surroundings: Surroundings) -> tuple[Any, Course]:
        """The trained compact model of a plan that drops layers, in float32, and the course of its last training."""
        return self._trained(plan, self._training, self._kept(surroundings))

    def repaired(self, plan: Plan, sets: Sets, surroundings: Surroundings) -> Repaired:
        """The trained model of a plan in the checkpoint's number format, with the record for the report.

        Args:
            plan: drops at least one layer.
            sets: data to measure the model on before it is trained, by name.
            surroundings: where it happens.
        """
        checkpoint = self._checkpoint
        cut = compact(checkpoint.model, checkpoint.architecture, plan)
        with computing_in(cut, checkpoint.dtype):
            before = scores_of(cut, checkpoint.task, sets)
        model, course = self.model_of(plan, surroundings)
        record = record_of(self._training, course, before)
        return Repaired(cast(model, checkpoint.dtype), record, is_measured=True)

    def _trained(self, plan: Plan, training: Training, surroundings: Surroundings) -> tuple[Any, Course]:
        """Train the model of a plan from where the schedule has it begin."""
        checkpoint = self._checkpoint
        whole, history = self._start(plan, surroundings)
        model = compact(whole, checkpoint.architecture, plan)
        course = train(model, checkpoint, plan, training, self._deciding, surroundings, history=history)
        return model, course

    def _start(self, plan: Plan, surroundings: Surroundings) -> tuple[Any, str]:
        """The whole model whose layers are dropped, and what has decided its weights.

        A base model with a new head is dropped from and then trained, as the paper does; the untouched model of the run is what
        ``finetune_first`` would train it to.
        """
        base, is_base = self._base, self._training.base is not None
        origin = f" from {base.sha256}" if is_base else ""
        if self._schedule is Schedule.AT_ONCE:
            return base.model, origin
        if is_base and self._schedule is Schedule.FINETUNE_FIRST:
            return self._checkpoint.model, self._schedule.value
        if not plan.dropped:
            return base.model, self._schedule.value + origin
        before, training = Plan.full(self._checkpoint.dimensions), self._training
        history = self._schedule.value + origin
        if self._schedule is Schedule.FINETUNE_FIRST_FROZEN:
            training = self._with(freeze=",".join(map(str, plan.dropped)))
        if self._schedule is Schedule.GRADUAL:
            training, gone = self._with(epochs=GRADUAL_EPOCHS), self.order[: len(plan.dropped)]
            before = before.dropping(gone[:-1])
            history += f" {','.join(map(str, gone))}"
        return self._whole(before, training, surroundings), history

    def _whole(self, plan: Plan, training: Training, surroundings: Surroundings) -> Any:
        """A whole model with the weights of the trained model of a plan; the layers that it drops are untrained."""
        model, _ = self._trained(plan, training, surroundings)
        return put_back(self._base.model, self._checkpoint.architecture, plan, model)

    def _with(self, **settings: Any) -> Training:
        return replace(self._training, settings=self._training.settings.model_copy(update=settings))

    def _kept(self, surroundings: Surroundings) -> Surroundings:
        """The same surroundings with a directory, since the models of a path are asked for more than once."""
        if surroundings.directory is not None:
            return surroundings
        if self._own is None:
            self._own = Path(tempfile.mkdtemp(prefix="axformer-recovery-"))
            weakref.finalize(self, shutil.rmtree, self._own, ignore_errors=True)
        return replace(surroundings, directory=self._own)


def put_back(model: Any, architecture: Architecture, plan: Plan, small: Any) -> Any:
    """A copy of a whole, prepared model with the weights of a compact model from which only layers are missing.

    Args:
        model: the whole model.
        architecture: its family, whose layers have weights of their own.
        plan: drops layers, and cuts nothing else.
        small: the compact model of the plan.
    """
    whole = deepcopy(model)
    layers, remaining = architecture.layers(whole), architecture.layers(small)
    inside = {id(weight) for layer in remaining for weight in _tensors(layer)}
    for place, index in enumerate(plan.remaining):
        layers[index].load_state_dict(remaining[place].state_dict())
    outside = {name: weight for name, weight in _named(small).items() if id(weight) not in inside}
    own = _named(whole)
    for name, weight in outside.items():
        own[name].data.copy_(weight.data)
    return whole


def _tensors(module: nn.Module) -> list[Any]:
    return [*module.parameters(), *module.buffers()]


def _named(module: nn.Module) -> dict[str, Any]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}

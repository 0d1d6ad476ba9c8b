"""Train the models of several plans, each from where its method says.

The weights of a plan's model are a function of the checkpoint, the plan, the training and its origin alone. The state of
every training lies under its own name, so that each is done once, and one that was interrupted continues.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from axformer.architectures.base import Architecture
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.compact import compact
from axformer.model.number_format import cast, computing_in
from axformer.model.surgery import operate
from axformer.plan.plan import Plan
from axformer.repair.losses import Course
from axformer.repair.refit import Refit, apply_refit, can_refit
from axformer.repair.training import Repaired, Training, record_of, train
from axformer.scores.measured import Sets, measure_sets, scores_of
from axformer.surroundings import Surroundings


@dataclass(frozen=True)
class Origin:
    """Where the training of a plan's model begins."""

    model: Any
    """A whole, prepared model."""
    history: str = ""
    """What else decides the weights that the training begins with."""
    before: Plan | None = None
    """The plan whose trained weights the whole model gets first; None for its own."""
    training: Training | None = None
    """The training of that one; None for the same as of the plan itself."""
    fits: Refit | None = None
    """Fitted weights that the plan's model gets before its training."""


Origins = Callable[[Plan], Origin]
"""Says of every plan where its training begins."""


class Recovery:
    """Trains the models of plans."""

    def __init__(self, checkpoint: Checkpoint, training: Training, deciding: DataSet, origins: Origins) -> None:
        """Train what plans leave of a checkpoint, which is not changed; each epoch ends with the losses on ``deciding``."""
        self._checkpoint = checkpoint
        self._training = training
        self._deciding = deciding
        self.origins = origins
        self._own: Path | None = None
        self._last: tuple[Plan, Training, Any] | None = None

    def model_of(self, plan: Plan, surroundings: Surroundings) -> tuple[Any, Course]:
        """The trained compact model of a plan, in float32, and the course of its last training."""
        return self._trained(plan, self._training, self._kept(surroundings))

    def whole_of(self, plan: Plan, surroundings: Surroundings) -> Any:
        """The untouched model with the trained weights of a plan in their places; it must not be changed."""
        return self._whole(self._checkpoint.model, plan, self._training, self._kept(surroundings))

    def repaired(self, plan: Plan, sets: Sets, surroundings: Surroundings) -> Repaired:
        """The trained model of a plan that removes something, in the checkpoint's number format, with its record for reports.

        Before it is trained, it is measured on ``sets``.
        """
        checkpoint = self._checkpoint
        cut = self._cut(checkpoint.model, plan, self.origins(plan).fits)
        with computing_in(cut, checkpoint.dtype):
            before = scores_of(measure_sets(cut, checkpoint.task, sets))
        model, course = self.model_of(plan, surroundings)
        record = record_of(self._training, course, before)
        return Repaired(cast(model, checkpoint.dtype), record, is_measured=True)

    def _trained(self, plan: Plan, training: Training, surroundings: Surroundings) -> tuple[Any, Course]:
        """Train the model of a plan from its origin."""
        checkpoint, origin = self._checkpoint, self.origins(plan)
        whole = origin.model
        if origin.before is not None:
            whole = self._whole(whole, origin.before, origin.training or training, surroundings)
        model = self._cut(whole, plan, origin.fits)
        course = train(model, checkpoint, plan, training, self._deciding, surroundings, history=origin.history)
        return model, course

    def _cut(self, whole: Any, plan: Plan, fits: Refit | None) -> Any:
        architecture = self._checkpoint.architecture
        model = compact(whole, architecture, plan)
        if fits is not None:
            apply_refit(model, architecture, plan, fits)
        return model

    def _whole(self, model: Any, plan: Plan, training: Training, surroundings: Surroundings) -> Any:
        """A copy of a whole model with the trained weights of a plan. The last one is kept, since the next begins with it."""
        if self._last is None or self._last[:2] != (plan, training):
            small, _ = self._trained(plan, training, surroundings)
            self._last = plan, training, put_back(model, self._checkpoint.architecture, plan, small)
        return self._last[2]

    def _kept(self, surroundings: Surroundings) -> Surroundings:
        """The same surroundings with a directory, since the models of a path are asked for more than once."""
        if surroundings.directory is not None:
            return surroundings
        if self._own is None:
            self._own = Path(tempfile.mkdtemp(prefix="axformer-recovery-"))
            weakref.finalize(self, shutil.rmtree, self._own, ignore_errors=True)
        return replace(surroundings, directory=self._own)


def check_own_weights(checkpoint: Checkpoint, knob: str, remedy: str) -> None:
    """Check that a model can be trained before something is taken out of it.

    Raises:
        ConfigError: its layers share their weights.
    """
    if not can_refit(checkpoint.model, checkpoint.architecture):
        raise ConfigError(
            f"{knob}: the layers of models of type '{checkpoint.architecture.model_type}' share their weights, so none can be "
            f"trained and then left out; {remedy}"
        )


def put_back(model: Any, architecture: Architecture, plan: Plan, small: Any) -> Any:
    """A copy of a whole, prepared model with the weights of a compact one; what the plan removes is as in the whole model.

    A model whose weights are their own places is cut like the whole one, so what it then holds says where each weight belongs,
    for any family and plan. It takes eight bytes for each weight meanwhile.

    Args:
        model: the whole model, which is not changed; its layers have weights of their own.
        small: the compact model of the plan, with other weights.
    """
    whole, places = deepcopy(model), deepcopy(model)
    first = 0
    for place in places.parameters():
        place.requires_grad_(False)
        place.data = torch.arange(first, first + place.numel(), device=place.device).view_as(place)
        first += place.numel()
    operate(places, architecture, plan)
    flat = torch.cat([weight.detach().flatten() for weight in whole.parameters()])
    values = dict(small.named_parameters(remove_duplicate=False))
    for name, place in places.named_parameters():
        flat[place.flatten()] = values[name].detach().flatten()
    parts = torch.split(flat, [weight.numel() for weight in whole.parameters()])
    for weight, part in zip(whole.parameters(), parts, strict=True):
        weight.data.copy_(part.view_as(weight))
    return whole

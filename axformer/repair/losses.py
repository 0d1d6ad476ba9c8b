"""The course of a training: its curve of losses, and how far it is."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from axformer.wire.finetuning import LossPoint
from axformer.wire.steps import Step, StepName


class Course(BaseModel):
    """What happened in a training."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int
    epochs: int
    """Epochs that were trained."""
    kept_epoch: int
    """The epoch whose weights are kept, from 1."""
    seconds: float
    """In all processes, if it was interrupted."""
    curve: tuple[LossPoint, ...]


def step_of(state: Any, seconds_a_step: float, begun_at: int) -> Step:
    """How far the training with this state of Trainer is, for those who watch.

    Args:
        seconds_a_step: the mean so far.
        begun_at: the step after which this process continued; 0 if the training began in it.
    """
    epoch = min(math.floor(state.epoch) + 1, state.num_train_epochs)
    continued = f", continued after step {begun_at}" if begun_at else ""
    return Step(
        name=StepName.TRAINING,
        done=state.global_step,
        known=state.max_steps,
        detail=f"epoch {epoch} of {state.num_train_epochs}{continued}",
        seconds_left=(state.max_steps - state.global_step) * seconds_a_step,
        curve=curve_of(state.log_history),
    )


def curve_of(history: Sequence[Mapping[str, Any]]) -> tuple[LossPoint, ...]:
    """The curve in Trainer's log."""
    points: dict[int, LossPoint] = {}
    for step, values in _entries(history):
        points[step] = points.get(step, LossPoint(step=step, epoch=0.0)).model_copy(update=values)
    return tuple(points.values())


def _entries(history: Sequence[Mapping[str, Any]]) -> Iterable[tuple[int, dict[str, float]]]:
    for entry in history:
        losses = {name: entry[key] for name, key in (("loss", "loss"), ("deciding", "eval_loss")) if key in entry}
        if losses:
            finite = {name: value for name, value in losses.items() if math.isfinite(value)}
            yield entry["step"], {"epoch": entry["epoch"], **finite}

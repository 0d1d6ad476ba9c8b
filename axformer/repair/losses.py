"""The course of a training: its curve of losses, and how far it is."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict

from axformer.wire.finetuning import LossPoint
from axformer.wire.steps import Step, StepName

_LOSS, _DECIDING = "loss", "eval_loss"
"""The names in Trainer's log."""


class Course(BaseModel):
    """What happened in a training."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int
    epochs: int
    """Epochs that were trained."""
    kept_epoch: int
    """The epoch whose weights are kept, from 1; 0 for the weights of before."""
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
    """The curve in Trainer's log.

    Trainer logs at regular steps and at the end of each epoch, so some of its means are of few steps, and noisy. They are put
    together with the next ones, and the last with the ones before, so that every point is of as many steps as a regular one.
    """
    points: dict[int, LossPoint] = {}
    deciding = [(entry["step"], entry["epoch"], "deciding", entry[_DECIDING]) for entry in _with(_DECIDING, history)]
    for step, epoch, name, loss in (*_means(_with(_LOSS, history)), *deciding):
        value = {name: loss} if math.isfinite(loss) else {}
        points[step] = points.get(step, LossPoint(step=step, epoch=epoch)).model_copy(update=value)
    return tuple(points[step] for step in sorted(points))


def _with(key: str, history: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [entry for entry in history if key in entry]


def _means(logged: Sequence[Mapping[str, Any]]) -> list[tuple[int, float, str, float]]:
    """Step, epoch, ``loss``, and the mean loss since the point before."""
    ends = [entry["step"] for entry in logged]
    counts = [end - start for start, end in pairwise((0, *ends))]
    regular, points = max(counts, default=0), list[tuple[int, float, str, float]]()
    steps, total = 0, 0.0
    for count, entry in zip(counts, logged, strict=True):
        is_full = steps >= regular and ends[-1] - points[-1][0] >= regular
        if is_full or not points:
            points.append((0, 0.0, "loss", math.nan))
            steps, total = 0, 0.0
        steps += count
        total += count * entry[_LOSS]
        points[-1] = (entry["step"], entry["epoch"], "loss", total / steps)
    return points

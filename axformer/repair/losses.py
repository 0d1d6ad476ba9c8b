"""The course of a training: its curve of losses, and how far it is."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LossPoint:
    """The losses after a step."""

    step: int
    epoch: float
    loss: float | None = None
    """Mean training loss since the point before; None where only the deciding rows were measured, or where it is not finite."""
    deciding: float | None = None
    """Loss on the deciding rows; None within an epoch."""


@dataclass(frozen=True)
class Course:
    """What happened in a training."""

    steps: int
    epochs: int
    """Epochs that were trained."""
    kept_epoch: int
    """The epoch whose weights are kept, from 1."""
    seconds: float
    """In all processes, if it was interrupted."""
    curve: tuple[LossPoint, ...]

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "Course":
        """The same from JSON."""
        return cls(**{**values, "curve": tuple(LossPoint(**point) for point in values["curve"])})


@dataclass(frozen=True)
class Moment:
    """How far a training is."""

    step: int
    steps: int
    """All steps; an early end may leave some out."""
    epoch: float
    epochs: int
    seconds_left: float
    begun_at: int
    """The step after which this process continued; 0 if the training began in it."""
    curve: tuple[LossPoint, ...]
    """So far."""


def moment_of(state: Any, seconds_a_step: float, begun_at: int) -> Moment:
    """How far the training with this state of Trainer is."""
    return Moment(
        step=state.global_step,
        steps=state.max_steps,
        epoch=state.epoch,
        epochs=state.num_train_epochs,
        seconds_left=(state.max_steps - state.global_step) * seconds_a_step,
        begun_at=begun_at,
        curve=curve_of(state.log_history),
    )


def curve_of(history: Sequence[Mapping[str, Any]]) -> tuple[LossPoint, ...]:
    """The curve in Trainer's log."""
    points: dict[int, LossPoint] = {}
    for step, epoch, loss, deciding in _entries(history):
        before = points.get(step, LossPoint(step, epoch))
        points[step] = LossPoint(
            step, epoch, before.loss if loss is None else loss, before.deciding if deciding is None else deciding
        )
    return tuple(points.values())


def _entries(history: Sequence[Mapping[str, Any]]) -> Iterable[tuple[int, float, float | None, float | None]]:
    for entry in history:
        if "loss" in entry or "eval_loss" in entry:
            yield entry["step"], entry["epoch"], _finite(entry.get("loss")), _finite(entry.get("eval_loss"))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None

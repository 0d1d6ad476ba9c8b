"""The path of a run: every acceptance gives a model; in a pass, each contains the following ones.

The plan at a point follows from the trace alone, so any of these models can be written without another pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from axformer.errors import PlanError
from axformer.plan.elements import Dimensions, parse
from axformer.plan.plan import Plan, PlanFile
from axformer.plan.result_files import read_result
from axformer.plan.trial import ModelFigures, Trial, Verdict

TRACE_NAME = "trace.jsonl"


@dataclass(frozen=True)
class Point:
    """A model on the path of a pass: the untouched one, or the result of an acceptance."""

    seq: int
    """The trial that led to it; 0 is the untouched model."""
    element: str | None
    """The accepted element; None for the untouched model."""
    loss: float
    """Loss on the deciding data."""
    plan: Plan
    figures: ModelFigures | None = None
    """Figures on the deciding data; None where trials are of single elements."""


@dataclass(frozen=True)
class Stop:
    """A point on the path of a finished pass."""

    trace: Sequence[Trial]
    """The trace of the whole pass."""
    seq: int
    """The last trial whose acceptance counts; 0 is the untouched model."""


def points_of(
    trace: Sequence[Trial], dimensions: Dimensions, attention_kept: int | None, *, keeps_bias: bool = False
) -> list[Point]:
    """The path of a trace, the untouched model first.

    Args:
        attention_kept: attention probabilities that hard attention keeps for each query; None without hard attention.
    """
    plan, points = Plan.full(dimensions), []
    for trial in trace:
        if trial.verdict in (Verdict.BASE, Verdict.ACCEPT):
            if trial.plan is not None:
                plan = Plan(layers=trial.plan)
            elif trial.element is not None:
                plan = plan.apply(parse(trial.element), top_k=attention_kept, keeps_bias=keeps_bias)
            points.append(Point(trial.seq, trial.element, trial.loss, plan, trial.figures))
    return points


def file_at(file: PlanFile, stop: Stop, dimensions: Dimensions) -> PlanFile:
    """The plan file of a finished pass after one of its trials.

    Args:
        file: the plan file of the kept point, which need not be the end of the pass.

    Raises:
        PlanError: the trace has no such trial, or does not lead to this plan.
    """
    numbers = [trial.seq for trial in stop.trace]
    if stop.seq not in numbers:
        raise PlanError(f"there is no trial {stop.seq}; the trace has trials {numbers[0]} to {numbers[-1]}")
    kept, config = file.config.get("attention_top_k"), file.config
    is_fitted = config.get("repair") == "refit" or config.get("refit") is True  # as it was called before
    points = points_of(stop.trace, dimensions, kept, keeps_bias=is_fitted)
    if all(point.plan != file.plan for point in points):
        raise PlanError("the trace does not lead to the plan; take plan.json and trace.jsonl of one result")
    reached = [point for point in points if point.seq <= stop.seq]
    return file.model_copy(update={"layers": reached[-1].plan.layers})


def read_trace_beside(plan: Path) -> list[Trial]:
    """The trace of the result that a plan belongs to, given the plan's file or the result's directory.

    Raises:
        PlanError: there is no trace, or it cannot be read.
    """
    result = plan if plan.is_dir() else plan.parent
    try:
        trace = [Trial.model_validate_json(line) for line in read_result(result, TRACE_NAME).splitlines()]
    except ValidationError as error:
        raise PlanError(f"'{result / TRACE_NAME}' is not a trace: {error.errors()[0]['msg']}") from None
    if not trace:
        raise PlanError(f"trace '{result / TRACE_NAME}' is empty")
    return trace

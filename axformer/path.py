"""The path of a pass: every acceptance is a model of its own, and each contains all that follow.

So a finished pass can hand out any of them without another pass: the plan at a point follows from the trace alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from axformer.config import PassConfig
from axformer.elements import Dimensions
from axformer.errors import PlanError
from axformer.plan import PlanFile
from axformer.search import plan_of
from axformer.trial import Trial

TRACE_NAME = "trace.jsonl"


@dataclass(frozen=True)
class Stop:
    """A place on the path of a finished pass."""

    trace: Sequence[Trial]
    """Of the whole pass."""
    seq: int
    """The last trial whose acceptance counts; 0 is the untouched model."""


def file_at(file: PlanFile, stop: Stop, dimensions: Dimensions) -> PlanFile:
    """The plan file of a finished pass as it was after one of its trials.

    Args:
        file: where the pass ended.
        stop: the place.
        dimensions: of the model that the pass began with.

    Raises:
        PlanError: the trace has no such trial, or does not lead to this plan.
    """
    numbers = [trial.seq for trial in stop.trace]
    if stop.seq not in numbers:
        raise PlanError(f"there is no trial {stop.seq}; the trace has trials {numbers[0]} to {numbers[-1]}")
    config = PassConfig(attention_top_k=file.config["attention_top_k"])  # knobs of earlier versions are not all known
    if plan_of(stop.trace, dimensions, config) != file.plan:
        raise PlanError("the trace does not lead to the plan; take plan.json and trace.jsonl of one result")
    plan = plan_of(stop.trace[: numbers.index(stop.seq) + 1], dimensions, config)
    return file.model_copy(update={"layers": plan.layers})


def read_trace_beside(plan: Path) -> list[Trial]:
    """The trace of the result that a plan belongs to, given the plan's file or the result's directory.

    Raises:
        PlanError: there is none, or it is not one.
    """
    file = (plan if plan.is_dir() else plan.parent) / TRACE_NAME
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"trace '{file}' cannot be read: {error}; it must lie beside the plan") from None
    try:
        trace = [Trial.model_validate_json(line) for line in lines]
    except ValidationError as error:
        raise PlanError(f"'{file}' is no trace: {error.errors()[0]['msg']}") from None
    if not trace:
        raise PlanError(f"trace '{file}' is empty")
    return trace

"""What a trial from a job's process must be before it is stored as the next one of its trace."""

import math
from collections.abc import Sequence

from axformer.errors import PlanError
from axformer.plan.elements import Dimensions, ElementKind, parse
from axformer.plan.trial import Phase, Trial, Verdict
from worker.sandbox.errors import ProcessMisbehavedError

MOST = 500_000
"""Trials of a trace, which the worker holds in memory, some two kilobytes each. A pass that tries each neuron of the largest
public encoders alone makes 300,000."""
_LONGEST_NAME = 64
"""Characters of an element's id, and of a precision's name."""
_MOST_COUNT = 2**31 - 1
_MOST_PARAMETERS = 2**63 - 1
"""As the database holds them."""


def check_next(trial: Trial, trace: Sequence[Trial], dimensions: Dimensions, most: int) -> None:
    """Make sure that a trial can be the next one.

    Args:
        trial: what the process says.
        trace: those before it.
        dimensions: of the model.
        most: trials that the pass can have.

    Raises:
        ProcessMisbehavedError: it is not, so that a file of a stranger has got hold of the process, or it is damaged.
    """
    if trial.seq != len(trace):
        raise ProcessMisbehavedError(f"trial {trial.seq} where {len(trace)} comes next")
    if trial.seq >= min(most, MOST):
        raise ProcessMisbehavedError(f"trial {trial.seq} of a pass that has {min(most, MOST)} at most")
    is_base = trial.phase is Phase.BASE
    if is_base != (trial.seq == 0) or is_base != (trial.element is None):
        raise ProcessMisbehavedError(f"trial {trial.seq} of the phase {trial.phase} for '{_short(trial.element)}'")
    if len(trial.precision) > _LONGEST_NAME or not trial.precision.isidentifier():
        raise ProcessMisbehavedError(f"trial {trial.seq} has no precision")
    if trial.element is not None and not _is_in(trial.element, dimensions):
        raise ProcessMisbehavedError(f"trial {trial.seq} of '{_short(trial.element)}', which the model does not have")
    if not 0 <= (trial.helped or 0) <= trial.total <= _MOST_COUNT or trial.samples > trial.total:
        raise ProcessMisbehavedError(f"trial {trial.seq} counts {trial.samples} of {trial.total} samples")
    if trial.parameters > _MOST_PARAMETERS:
        raise ProcessMisbehavedError(f"trial {trial.seq} counts {trial.parameters} parameters")
    stands = trial.verdict in (Verdict.BASE, Verdict.ACCEPT)
    if not math.isfinite(trial.seconds) or (stands and not math.isfinite(trial.loss)):
        raise ProcessMisbehavedError(f"trial {trial.seq} has a loss of {trial.loss} after {trial.seconds} s")


def _is_in(id: str, dimensions: Dimensions) -> bool:
    if len(id) > _LONGEST_NAME:
        return False
    try:
        element = parse(id)
    except PlanError:
        return False
    if element.layer >= dimensions.layers or element.id != id:
        return False
    if element.start is None or element.stop is None:
        return True
    of = dimensions.heads if element.kind is ElementKind.HEAD else dimensions.intermediate_size
    return element.start < element.stop <= of


def _short(text: str | None) -> str:
    return (text or "nothing")[:_LONGEST_NAME]

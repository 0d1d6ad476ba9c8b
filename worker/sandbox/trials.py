"""Checks on a trial from a job's process before it is stored as the next one of its trace."""

import math

from axformer.config import RunConfig
from axformer.errors import PlanError
from axformer.methods.progress import meter_of
from axformer.plan.elements import Dimensions, ElementKind, is_of_encoder, parse
from axformer.plan.levels import are_levels_of
from axformer.plan.plan import LayerPlan, Plan
from axformer.plan.trial import ModelFigures, Phase, Trial, Verdict
from axformer.wire import bounds
from worker.sandbox.errors import ProcessMisbehavedError

MOST = bounds.TRIALS
"""Most trials of a job. The worker holds them in memory at some two kilobytes each; a pass that tries every neuron of the
largest public encoders separately makes 300,000."""
_LONGEST_NAME = 64
"""Most characters of an element's id and of a precision's name."""
_NEURON_CHARACTERS = 8
"""Most characters of an id for each neuron that it lists."""
_MOST_METRICS = 32
_MOST_COUNT = 2**31 - 1
_MOST_PARAMETERS = 2**63 - 1
"""The largest value that the database stores."""


def most_trials(dimensions: Dimensions, config: RunConfig) -> int:
    """An upper bound on the number of trials of a job with these knobs."""
    return min(meter_of(dimensions, config).longest, MOST)


def check_next(trial: Trial, number: int, dimensions: Dimensions, most: int) -> None:
    """Check that a trial can be the next one.

    Args:
        number: of the trials before it.
        most: an upper bound on the number of the job's trials.

    Raises:
        ProcessMisbehavedError: it cannot; the process is damaged, or an uploaded file has taken control of it.
    """
    is_base = trial.phase is Phase.BASE
    if trial.seq != number:
        raise ProcessMisbehavedError(f"trial {trial.seq} where {number} comes next")
    if number >= most:
        raise ProcessMisbehavedError(f"trial {trial.seq} of a job that has {most} trials at most")
    is_whole = is_of_encoder(trial.element)
    if is_base != (trial.seq == 0) or is_base != (trial.element is None):
        raise ProcessMisbehavedError(f"trial {trial.seq} of the phase {trial.phase} for '{_short(trial.element)}'")
    if len(trial.precision) > _LONGEST_NAME or not trial.precision.isidentifier():
        raise ProcessMisbehavedError(f"trial {trial.seq} has no precision")
    if trial.element is not None and not is_whole and not _is_in(trial.element, dimensions):
        raise ProcessMisbehavedError(f"trial {trial.seq} of '{_short(trial.element)}', which the model does not have")
    _check_what_it_holds(trial, dimensions, is_whole=is_whole)
    if not 0 <= (trial.helped or 0) <= trial.total <= _MOST_COUNT or trial.samples > trial.total:
        raise ProcessMisbehavedError(f"trial {trial.seq} counts {trial.samples} of {trial.total} samples")
    if trial.parameters > _MOST_PARAMETERS:
        raise ProcessMisbehavedError(f"trial {trial.seq} counts {trial.parameters} parameters")
    stands = trial.verdict in (Verdict.BASE, Verdict.ACCEPT)
    if not math.isfinite(trial.seconds) or (stands and not math.isfinite(trial.loss)):
        raise ProcessMisbehavedError(f"trial {trial.seq} has a loss of {trial.loss} after {trial.seconds} s")


def _check_what_it_holds(trial: Trial, dimensions: Dimensions, *, is_whole: bool) -> None:
    """Check the plan and the measurements that some trials hold."""
    if is_whole != (trial.plan is not None) or (trial.plan is not None and not _fits(trial.plan, dimensions)):
        raise ProcessMisbehavedError(f"trial {trial.seq} has a plan that is not one of this model")
    if trial.milliseconds is not None and not _is_measured(trial, dimensions):
        raise ProcessMisbehavedError(f"trial {trial.seq} has milliseconds that are not those of this model's blocks")
    if trial.levels is not None and not (is_whole and are_levels_of(trial.levels, dimensions)):
        raise ProcessMisbehavedError(f"trial {trial.seq} has a level table that is not one of this model's blocks")
    if trial.figures is not None and not ((is_whole or trial.phase is Phase.BASE) and _are_figures(trial.figures)):
        raise ProcessMisbehavedError(f"trial {trial.seq} has figures that are not those of a model")


def _is_in(id: str, dimensions: Dimensions) -> bool:
    if len(id) > _LONGEST_NAME + _NEURON_CHARACTERS * dimensions.intermediate_size:
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


def _is_measured(trial: Trial, dimensions: Dimensions) -> bool:
    assert trial.milliseconds is not None
    measured = (trial.milliseconds.attention, dimensions.heads), (trial.milliseconds.ffn, dimensions.intermediate_size)
    return trial.phase is Phase.BASE and all(
        1 < len(figures) <= units + 1 and all(math.isfinite(one) and one >= 0 for one in figures)
        for figures, units in measured
    )


def _are_figures(figures: ModelFigures) -> bool:
    counts = figures.parameters, figures.encoder_parameters, figures.operations, figures.encoder_operations
    return (
        len(figures.metrics) <= _MOST_METRICS
        and all(len(name) <= _LONGEST_NAME and name.isidentifier() for name in figures.metrics)
        and all(map(math.isfinite, figures.metrics.values()))
        and max(counts) <= _MOST_PARAMETERS
    )


def _fits(layers: tuple[LayerPlan, ...], dimensions: Dimensions) -> bool:
    try:
        Plan(layers=layers).check_fits(dimensions)
    except PlanError:
        return False
    return True


def _short(text: str | None) -> str:
    return (text or "nothing")[:_LONGEST_NAME]

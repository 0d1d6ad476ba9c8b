"""How good the models on the path of a pass are on data that did not decide, and which of them it confirms.

A pass looks at the data that decides hundreds of times, so some of what it accepts is good there by chance. Each acceptance is
a model. Measured on rows that the pass has not seen, a few dozen models are compared instead of hundreds of trials, and along a
path on which each contains the next; so the choice is led astray much less. It is not unbiased, for the least of several losses
is below what that model has elsewhere.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.errors import CheckpointError
from axformer.evaluation.build import evaluators
from axformer.evaluation.plain import predict
from axformer.evaluation.recording import Recording
from axformer.intake.checkpoint import Checkpoint
from axformer.methods.outline import outline_of
from axformer.model.operations import Operations
from axformer.plan.path import Point
from axformer.plan.plan import Plan
from axformer.scores.certificate import certify
from axformer.scores.confidence import CONFIDENCE, Figures, first_metric, lower_bound
from axformer.scores.scoring import figures_of, table_of
from axformer.wire.report import Certificate

CONFIRMING = "confirming"
"""What the data that confirms is called."""
_DECIDING = "deciding"
_REMEDY = "allow more, or confirm by more rows"


@dataclass(frozen=True)
class MeasuredPath:
    """The path of a finished pass, measured on data that did not decide."""

    points: Sequence[Point]
    figures: Sequence[Mapping[str, Figures]]
    """Of each point, by the name of the data."""
    kept: int
    """Place of the point that is kept."""
    certificate: Certificate | None = None
    """What is certified of it; None where ``within_points`` did not choose."""

    @property
    def point(self) -> Point:
        """The one that is kept."""
        return self.points[self.kept]

    @property
    def loss(self) -> float | None:
        """Its loss on the data that confirms; None where none does."""
        confirming = self.figures[self.kept].get(CONFIRMING)
        return None if confirming is None else confirming["loss"]


def measure_path(
    checkpoint: Checkpoint,
    points: Sequence[Point],
    sets: Mapping[str, Samples],
    config: RunConfig,
    *,
    model_of: Callable[[Plan], Any] | None = None,
    deciding: Samples | None = None,
    chooses: bool = True,
) -> MeasuredPath:
    """Measure every point of a path, in the arithmetic that the pass decided in, and choose one where there is data to confirm.

    Args:
        sets: the data, by its name; only that which confirms chooses, and where none does the last is kept.
        model_of: gives the model of a plan whose weights are not the checkpoint's; None where a plan says all.
        deciding: with ``within_points`` the points are tested safest first by these rows; without them along the path.
        chooses: else the last is kept, whatever was measured.

    Raises:
        CheckpointError: the loss of the untouched model is not a finite number.
    """
    task = checkpoint.task
    asked = dict(sets) if deciding is None else {**sets, _DECIDING: deciding}
    if model_of is None:
        tables = {name: _tables(checkpoint, points, samples, config) for name, samples in asked.items()}
    else:
        tables = _tables_of_models(checkpoint, points, asked, model_of)
    by_deciding = tables.pop(_DECIDING, None)
    figures = [
        {name: figures_of(of_points[place], task) for name, of_points in tables.items()} for place in range(len(points))
    ]
    confirming = [one[CONFIRMING]["loss"] for one in figures if CONFIRMING in one]
    if confirming and not math.isfinite(confirming[0]):
        raise CheckpointError(
            f"the model's loss on the part of the validation set that confirms is {confirming[0]}; check its weights and labels"
        )
    if not confirming or not chooses:
        return MeasuredPath(points, figures, len(points) - 1)
    measured = tables[CONFIRMING]
    if config.within_points is None:
        return MeasuredPath(points, figures, kept_of([table[:, 0] for table in measured], config))
    kept, certificate = certify(
        *(measured, task, config.within_points, [point.seq for point in points]),
        _operations(checkpoint, points, sets[CONFIRMING]),
        deciding=by_deciding,
        passes=len(outline_of(config).passes(config)),
    )
    return MeasuredPath(points, figures, kept, certificate)


def _operations(checkpoint: Checkpoint, points: Sequence[Point], samples: Samples) -> list[int]:
    """Of each point, in one look at the rows."""
    operations = Operations(
        checkpoint.model, checkpoint.architecture, pooled=checkpoint.task.pooled, lengths=samples.lengths
    )
    return [operations.left(point.plan) for point in points]


def kept_of(losses: Sequence[np.ndarray], config: RunConfig) -> int:
    """The place of the point that is kept, by the losses on the rows that confirm.

    It is the one with the least mean loss, and among equals the last, which is the smallest. Where a pass lets the loss go up
    to so many times the untouched model's (``loss_limit``), it is the last before the first whose mean may be above that. A
    one-sided bound decides, by Student's t over the samples, not the mean: of many models above it one looks below by chance.

    Args:
        losses: of each sample, shape (samples,), with each point, the untouched model first.
        config: the knobs.
    """
    limit = config.loss_limit
    if limit is None:
        means = [one.mean() for one in losses]
        least = min(mean for mean in means if math.isfinite(mean))
        return max(place for place, mean in enumerate(means) if mean <= least)
    allowed = limit * losses[0]
    gaps = (lower_bound(allowed - one, 1 - CONFIDENCE) for one in losses[1:])
    return len(list(takewhile(lambda gap: gap > 0, gaps)))


def note_of(measured: MeasuredPath, config: RunConfig) -> str | None:
    """What is said of the choice; None where there was none."""
    accepted = len(measured.points) - 1
    if accepted == 0 or measured.loss is None:
        return None
    confirming = [figures[CONFIRMING] for figures in measured.figures]
    chosen_by = "loss" if config.within_points is None else first_metric(confirming[0])
    first, kept, last = (confirming[place][chosen_by] for place in (0, measured.kept, -1))
    name, ends = chosen_by.replace("_", " "), f"{first:.4f} untouched and {last:.4f} at the end of the pass"
    more = "" if measured.kept == accepted else _why_not_the_next(name, config)
    if measured.kept == 0:
        return f"none of the {accepted} acceptances is kept: on the rows that did not decide the {name} is {ends}{more}"
    return (
        f"{measured.kept} of {accepted} acceptances are kept, up to trial {measured.point.seq}: on the rows that did not "
        f"decide the {name} is {kept:.4f} there, {ends}{more}"
    )


def _why_not_the_next(name: str, config: RunConfig) -> str:
    """What ended a path that was tested model by model; nothing where the least loss was looked for."""
    if config.within_points is not None:
        return f"; the {name} of the next that was tested may have fallen further than within_points allows: {_REMEDY}"
    if config.loss_limit is not None:
        return f"; the loss of the next may be above {config.loss_limit:g} times the untouched model's: {_REMEDY}"
    return ""


def _tables_of_models(
    checkpoint: Checkpoint, points: Sequence[Point], sets: Mapping[str, Samples], model_of: Callable[[Plan], Any]
) -> dict[str, list[np.ndarray]]:
    """The same where each point is a model of its own."""
    task = checkpoint.task
    tables: dict[str, list[np.ndarray]] = {name: [] for name in sets}
    for point in points:
        model = checkpoint.model if point.seq == 0 else model_of(point.plan)
        for name, samples in sets.items():
            found = predict(model, task, samples)
            tables[name].append(table_of(samples.per_sample(found.losses), found.answers, task, samples))
    return tables


def _tables(checkpoint: Checkpoint, points: Sequence[Point], samples: Samples, config: RunConfig) -> list[np.ndarray]:
    """What each point makes of each sample of one data set. Each differs from the one before in one element, as a trial does,
    so it is evaluated like one: what lies below the element is not computed again."""
    recording = Recording(checkpoint.task, samples)
    tables = []
    with evaluators(checkpoint, samples, config, shards=1, task=recording) as (evaluator, _):
        for point in points:
            losses = evaluator.losses(point.plan)
            tables.append(table_of(losses, recording.answers, checkpoint.task, samples))
            evaluator.accept(point.plan)
    return tables

"""How good the models on the path of a pass are on data that did not decide, and which of them it confirms.

A pass looks at the data that decides hundreds of times, so some of what it accepts is good there by chance. Each acceptance is
a model. Measured on rows that the pass has not seen, a few dozen models are compared instead of hundreds of trials, and along a
path on which each contains the next; so the choice is led astray much less. It is not unbiased, for the least of several losses
is below what that model has elsewhere.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import torch

from axformer.config import PassConfig
from axformer.data.batches import Samples
from axformer.errors import CheckpointError
from axformer.evaluation.build import evaluators
from axformer.evaluation.recording import Recording
from axformer.intake.checkpoint import Checkpoint
from axformer.methods.axformer.metric_limit import reliably_within
from axformer.methods.axformer.safeguards import lower_bound
from axformer.plan.path import Point
from axformer.scores.confidence import CONFIDENCE, Figures, first_metric
from axformer.scores.scoring import figures_of, table_of

CONFIRMING = "confirming"
"""What the data that confirms is called."""
_REMEDY = "allow more, or confirm by more rows"


@dataclass(frozen=True)
class MeasuredPath:
    """The path of a finished pass, measured on data that did not decide."""

    points: Sequence[Point]
    figures: Sequence[Mapping[str, Figures]]
    """Of each point, by the name of the data."""
    kept: int
    """Place of the point that is kept."""

    @property
    def point(self) -> Point:
        """The one that is kept."""
        return self.points[self.kept]

    @property
    def loss(self) -> float | None:
        """Its loss on the data that confirms; null where none does."""
        confirming = self.figures[self.kept].get(CONFIRMING)
        return None if confirming is None else confirming["loss"]


def measure_path(
    checkpoint: Checkpoint,
    points: Sequence[Point],
    sets: Mapping[str, Samples],
    config: PassConfig,
    *,
    chooses: bool = True,
) -> MeasuredPath:
    """Measure every point of a path, in the arithmetic that the pass decided in, and choose one where there is data to confirm.

    Args:
        sets: the data, by its name; only that which confirms chooses, and where none does the last is kept.
        chooses: else the last is kept, whatever was measured.

    Raises:
        CheckpointError: the loss of the untouched model is not a finite number.
    """
    task = checkpoint.task
    tables = {name: _tables(checkpoint, points, samples, config) for name, samples in sets.items()}
    figures = [
        {name: figures_of(of_points[place], task) for name, of_points in tables.items()} for place in range(len(points))
    ]
    confirming = [one[CONFIRMING]["loss"] for one in figures if CONFIRMING in one]
    if confirming and not math.isfinite(confirming[0]):
        raise CheckpointError(
            f"the model's loss on the part of the validation set that confirms is {confirming[0]}; check its weights and labels"
        )
    kept = len(points) - 1
    if confirming and chooses:
        measured, points_allowed = tables[CONFIRMING], config.within_points
        if points_allowed is None:
            kept = kept_of([table[:, 0] for table in measured], config)
        else:
            kept = reliably_within(measured, task, points_allowed)
    return MeasuredPath(points, figures, kept)


def kept_of(losses: Sequence[np.ndarray], config: PassConfig) -> int:
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
    gaps = (lower_bound(torch.from_numpy(allowed - one), 1 - CONFIDENCE) for one in losses[1:])
    return len(list(takewhile(lambda gap: gap > 0, gaps)))


def note_of(measured: MeasuredPath, config: PassConfig) -> str | None:
    """What is said of the choice; null where there was none."""
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


def _why_not_the_next(name: str, config: PassConfig) -> str:
    """What ended a path that was tested model by model; nothing where the least loss was looked for."""
    if config.within_points is not None:
        return f"; the {name} of the next may have fallen further than within_points allows: {_REMEDY}"
    if config.loss_limit is not None:
        return f"; the loss of the next may be above {config.loss_limit:g} times the untouched model's: {_REMEDY}"
    return ""


def _tables(checkpoint: Checkpoint, points: Sequence[Point], samples: Samples, config: PassConfig) -> list[np.ndarray]:
    """What each point makes of each sample of one data set. Each differs from the one before in one element, as a trial does,
    so it is evaluated like one: what lies below the element is not computed again."""
    recording = Recording(checkpoint.task, len(samples.sample_of_row))
    tables = []
    with evaluators(checkpoint, samples, config, shards=1, task=recording) as (evaluator, _):
        for point in points:
            losses = evaluator.losses(point.plan)
            tables.append(table_of(losses, recording.answers, checkpoint.task, samples))
            evaluator.accept(point.plan)
    return tables

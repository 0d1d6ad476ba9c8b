"""Measure the models on a pass's path on rows that did not decide, and choose one of them.

A pass evaluates the deciding rows hundreds of times, so some of its acceptances are good there by chance. Each acceptance is
a model. On rows that the pass has not seen, only a few dozen nested models are compared instead of hundreds of trials, so
chance misleads the choice much less. The choice is still biased: the lowest of several losses is lower than that model's loss
on other data.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import numpy as np

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.errors import CheckpointError
from axformer.evaluation.untouched import make_evaluator
from axformer.forms.kinds import COMPACT
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.operations import Operations
from axformer.plan.path import Point
from axformer.plan.plan import Plan
from axformer.scores.answer_sheets import AnsweringModel, ConfirmingRows, sheet_of
from axformer.scores.certificate import certify, certify_sheet
from axformer.scores.confidence import CONFIDENCE, Figures, lower_bound
from axformer.scores.labelling import Labels
from axformer.scores.measured import Measured, Recording, measure
from axformer.scores.planning import USUAL_POINTS
from axformer.scores.task_tests import paired_test
from axformer.wire.answer_sheet import AnswerSheet
from axformer.wire.metrics import in_words, judging_metric
from axformer.wire.steps import Counter, OnStep, StepName, ignore
from axformer.wire.verdicts import Certificate

CONFIRMING = "confirming"
"""Name of the data set that confirms."""
UNLABELLED = "unlabelled"
"""Name of the unlabelled rows that confirm, with the untouched model's answers as labels."""
_REMEDY = "allow more, or confirm by more rows"


@dataclass(frozen=True)
class MeasuredPath:
    """The path of a finished pass, measured on rows that did not decide."""

    points: Sequence[Point]
    figures: Sequence[Mapping[str, Figures]]
    """Figures of each point by data set."""
    kept: int
    """Index of the point that is kept."""
    certificate: Certificate | None = None
    """Its certificate; None unless ``within_points`` chose it."""
    sheet: AnswerSheet | None = None
    """The answers of all points to the confirming rows; None without unlabelled ones."""
    untouched: Mapping[str, Measured] = field(default_factory=dict, compare=False)
    """The untouched model by data set."""

    @property
    def point(self) -> Point:
        """The point that is kept."""
        return self.points[self.kept]

    @property
    def loss(self) -> float | None:
        """The kept point's loss on the confirming rows; None if there are none."""
        confirming = self.figures[self.kept].get(CONFIRMING)
        return None if confirming is None else confirming["loss"]


@dataclass(frozen=True)
class Choosing:
    """How the confirming rows choose."""

    chooses: bool = True
    """False to keep the last point whatever the figures are; labels then only certify it."""
    doubt: str | None = None
    """Why the labelled rows can certify nothing; None if they can."""
    points: float | None = None
    """The points that unlabelled rows are to certify; None to certify nothing by them."""
    labels: Labels = field(default_factory=dict)
    """Those that people gave for unlabelled rows."""


def measure_path(
    checkpoint: Checkpoint,
    points: Sequence[Point],
    sets: Mapping[str, DataSet],
    config: RunConfig,
    *,
    model_of: Callable[[Plan], Any] | None = None,
    choosing: Choosing = Choosing(),
    on_step: OnStep = ignore,
) -> MeasuredPath:
    """Measure every point of a path in the arithmetic that the pass used, and choose one if there are confirming rows.

    Args:
        sets: the data sets by name. Only the confirming and the unlabelled one choose; without them the last point is kept.
        model_of: builds the model of a plan if its weights differ from the checkpoint's; None if the plan says it all.
        on_step: takes reports of how many models are measured.

    Raises:
        CheckpointError: the loss of the untouched model is not a finite number.
    """
    counter = Counter(StepName.PATH, len(points) * len(sets), on_step)
    if model_of is None:
        found = {name: _masked(checkpoint, points, data.samples, config, counter) for name, data in sets.items()}
    else:
        found = _models(checkpoint, points, sets, model_of, counter)
    confirming = [one.figures["loss"] for one in found.get(CONFIRMING, ())]
    if confirming and not math.isfinite(confirming[0]):
        raise CheckpointError(
            f"the model's loss on the part of the validation set that confirms is {confirming[0]}; check its weights and labels"
        )
    measured = MeasuredPath(
        points,
        [{name: by_point[index].figures for name, by_point in found.items()} for index in range(len(points))],
        len(points) - 1,
        untouched={name: by_point[0] for name, by_point in found.items()},
    )
    if UNLABELLED in sets:
        return _by_answers(measured, checkpoint, sets, found, config, choosing)
    if not confirming or not choosing.chooses:
        return measured
    if config.within_points is None:
        return replace(measured, kept=_by_losses(found[CONFIRMING], config))
    tables, allowed = [one.votes for one in found[CONFIRMING]], float(config.within_points)
    kept, certificate = certify(
        *(tables, paired_test(tables[0], checkpoint.task, allowed), allowed, [point.seq for point in points]),
        _operations(checkpoint, points, sets[CONFIRMING].samples),
        choosing.doubt,
    )
    return replace(measured, kept=kept, certificate=certificate)


def _by_losses(confirming: Sequence[Measured], config: RunConfig) -> int:
    """The point that losses on labelled rows choose."""
    tables = [one.table if config.loss_limit is None else one.votes for one in confirming]
    return kept_of([table[:, 0] for table in tables], config)


def _by_answers(
    measured: MeasuredPath,
    checkpoint: Checkpoint,
    sets: Mapping[str, DataSet],
    found: Mapping[str, Sequence[Measured]],
    config: RunConfig,
    choosing: Choosing,
) -> MeasuredPath:
    """Choose a point by labelled and unlabelled rows together. Without points, labelled rows alone choose, or nobody."""
    is_doubted, allowed, points = choosing.doubt is not None, choosing.points, measured.points
    rows = ConfirmingRows(None if is_doubted else sets.get(CONFIRMING), sets[UNLABELLED])
    names = [name for name in (CONFIRMING, UNLABELLED) if name in sets and not (is_doubted and name == CONFIRMING)]
    operations = _operations(checkpoint, points, sets[UNLABELLED].samples)
    models = [
        AnsweringModel(point.seq, COMPACT, operations[0] / operations[index], [found[name][index] for name in names])
        for index, point in enumerate(points)
    ]
    sheet = sheet_of(rows, models[0].answers, models[1:], checkpoint.model.config, allowed or USUAL_POINTS)
    measured = replace(measured, sheet=sheet)
    if (not choosing.chooses and not choosing.labels) or (allowed is None and CONFIRMING not in sets):
        return measured
    if allowed is None:
        return replace(measured, kept=_by_losses(found[CONFIRMING], config))
    certificate = certify_sheet(sheet, COMPACT, choosing.labels)
    if not choosing.chooses:
        return replace(measured, certificate=certificate if certificate.kept == points[-1].seq else None)
    kept = next(index for index, point in enumerate(points) if point.seq == certificate.kept)
    return replace(measured, kept=kept, certificate=certificate)


def _operations(checkpoint: Checkpoint, points: Sequence[Point], samples: Samples) -> list[int]:
    """Count each point's operations for one forward pass over the rows."""
    operations = Operations(
        checkpoint.model, checkpoint.architecture, pooled=checkpoint.task.pooled, lengths=samples.lengths
    )
    return [operations.left(point.plan) for point in points]


def kept_of(losses: Sequence[np.ndarray], config: RunConfig) -> int:
    """Choose a point by its losses on the confirming rows, and return its index.

    Without a ``loss_limit``, the point with the lowest mean loss is kept; of equal ones the last, which is the smallest. With
    one, the loss may rise to that multiple of the untouched model's, and the path is kept up to the first point whose mean
    loss may exceed it. A one-sided bound by Student's t over the samples decides that, not the mean itself: among many models
    above the limit, one would fall below it by chance.

    Args:
        losses: per-sample losses of each point, shape (samples,), the untouched model first; for a limit of different inputs.
        config: the knobs.
    """
    limit = config.loss_limit
    if limit is None:
        means = [of_point.mean() for of_point in losses]
        least = min(mean for mean in means if math.isfinite(mean))
        return max(index for index, mean in enumerate(means) if mean <= least)
    allowed = limit * losses[0]
    gaps = (lower_bound(allowed - of_point, 1 - CONFIDENCE) for of_point in losses[1:])
    return len(list(takewhile(lambda gap: gap > 0, gaps)))


def note_of(measured: MeasuredPath, config: RunConfig) -> str | None:
    """Describe the choice in words; None if there was none."""
    accepted = len(measured.points) - 1
    if accepted == 0 or measured.loss is None:
        return None
    confirming = [figures[CONFIRMING] for figures in measured.figures]
    chosen_by = "loss" if config.within_points is None else judging_metric(confirming[0], CONFIRMING)
    first, kept, last = (confirming[index][chosen_by] for index in (0, measured.kept, -1))
    name, ends = in_words(chosen_by), f"{first:.4f} untouched and {last:.4f} at the end of the pass"
    more = "" if measured.kept == accepted else _why_not_the_next(name, config, measured.certificate)
    if measured.kept == 0:
        none = f"none of the {accepted} acceptances is" if accepted > 1 else "the only acceptance is not"
        return f"{none} kept: on the rows that did not decide the {name} is {ends}{more}"
    return (
        f"{measured.kept} of {accepted} acceptances are kept, up to trial {measured.point.seq}: on the rows that did not "
        f"decide the {name} is {kept:.4f} there, {ends}{more}"
    )


def _why_not_the_next(name: str, config: RunConfig, certificate: Certificate | None) -> str:
    """Say why the next model was not kept; empty if the lowest loss chose, or if no later model costs less."""
    if certificate is not None and certificate.reason is None:
        return ""
    if config.within_points is not None:
        return f"; the {name} of the next that was tested may have fallen further than within_points allows: {_REMEDY}"
    if config.loss_limit is not None:
        return f"; the loss of the next may be above {config.loss_limit:g} times the untouched model's: {_REMEDY}"
    return ""


def _models(
    checkpoint: Checkpoint,
    points: Sequence[Point],
    sets: Mapping[str, DataSet],
    model_of: Callable[[Plan], Any],
    counter: Counter,
) -> dict[str, list[Measured]]:
    """Measure each point on each data set, where weights differ from the checkpoint's."""
    found: dict[str, list[Measured]] = {name: [] for name in sets}
    for point in points:
        model = checkpoint.model if point.seq == 0 else model_of(point.plan)
        for name, data in sets.items():
            found[name].append(measure(model, checkpoint.task, data.samples))
            counter.advance()
    return found


def _masked(
    checkpoint: Checkpoint, points: Sequence[Point], samples: Samples, config: RunConfig, counter: Counter
) -> list[Measured]:
    """Measure each point on one data set with the checkpoint's weights.

    A point differs from the one before in one element, so it is evaluated like a trial: hidden states below the element are
    reused.
    """
    recording = Recording(checkpoint.task, samples)
    found = []
    with make_evaluator(checkpoint, samples, config, recording) as evaluator:
        for point in points:
            found.append(recording.measured(evaluator.losses(point.plan)))
            evaluator.accept(point.plan)
            counter.advance()
    return found

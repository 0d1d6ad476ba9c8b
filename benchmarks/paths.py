"""The models on a path of compression, each in the forms that are deployed, and how fast they are beside the untouched one."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from axformer.data.batches import Samples
from axformer.forms.form import Form
from axformer.forms.kinds import COMPACT, ONNX_INT8
from axformer.forms.make import Finished, loaded_form
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.plan.elements import encoder_share
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial, Verdict
from axformer.reporting.form_reports import one_by_one
from axformer.reporting.speed import Effort, measure_speed
from axformer.reporting.workloads import REPORTED, limits_of, own_workloads
from axformer.run import PruningRun
from axformer.scores.measured import Measured, measure
from axformer.wire.report import SpeedCell
from axformer.wire.run import read_run
from benchmarks.harness import Arm, Cell, Place
from benchmarks.prune import rows_of

FORMS = (COMPACT, ONNX_INT8)
"""The forms of every model, in this order; the second is for processors alone."""
SHOWN = 64
"""Inputs that a form is made by."""


def forms_along(
    cell: Cell, arm: Arm, place: Place, home: Path, checkpoint: Checkpoint, few: Samples, directory: Path
) -> Iterator[tuple[float, Plan, Form]]:
    """The untouched model and every smaller one, each in all its forms: the budget, the plan and the form.

    Args:
        cell: names the rows that decide, and those that calibrate.
        arm: the knobs of the run, ``budgets`` among them.
        place: where the rows lie.
        home: directory of the checkpoint.
        checkpoint: the checkpoint as it is loaded.
        few: inputs that forms are made by.
        directory: a new one for the forms' files.
    """
    fit, deciding = (str(rows_of(cell.checkpoint, part, arm, place)) for part in ("calibrate", "validation"))
    knobs = {"method": "compress", "within_points": None, "confirm": 0, **arm.knobs}
    opened = PruningRun.open(
        read_run({"checkpoint": str(home), "validation": deciding, "calibrate": fit, "config": knobs}),
        device=place.device,
    )
    for trial in opened.trials():
        if trial.verdict not in (Verdict.BASE, Verdict.ACCEPT):
            continue
        finished = Finished(checkpoint, opened.plan, opened.compact_model(), few)
        for name in FORMS if place.device == "cpu" else (COMPACT,):
            yield _budget(trial, arm), opened.plan, loaded_form(finished, name, directory / str(trial.seq))


def _budget(trial: Trial, arm: Arm) -> float:
    """The share of the operations that a model of the path was asked to keep."""
    if trial.verdict is Verdict.BASE:
        return 1.0
    (asked,) = [share for share in arm.knobs["budgets"] if encoder_share(share) == trial.element]
    return float(asked)


def answered(form: Form, checkpoint: Checkpoint, data: DataSet) -> Measured:
    """What a form answers; int8 takes one input at a time, as in a service."""
    given = one_by_one(data, checkpoint) if form.name == ONNX_INT8 else data
    return measure(form.model, checkpoint.task, given.samples)


def speeds(checkpoint: Checkpoint, samples: Samples, models: Sequence[Any], effort: Effort) -> list[list[SpeedCell]]:
    """The speeds of models in turns with the untouched one, with one input and with 32."""
    limits = limits_of(
        checkpoint.head, checkpoint.model.config, checkpoint.architecture.max_tokens(checkpoint.model.config)
    )
    loads = own_workloads(samples.encoded, checkpoint.tokenizer, limits, REPORTED)
    return measure_speed([checkpoint.model, *models], loads, effort)[1:]

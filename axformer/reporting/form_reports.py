"""Every form of a result and the untouched model, measured once on every data set, for ``forms`` in ``report.json``."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from axformer.data.batches import Samples
from axformer.forms.agreement import Agreement, compare_outputs
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import BASE, COMPACT, KINDS
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.compact import stock_attention
from axformer.reporting.speed import Effort, measure_speed
from axformer.reporting.workloads import REPORTED, limits_of, own_workloads
from axformer.scores.measured import Measured, Sets, compare, measure
from axformer.tasks.base import Task
from axformer.tasks.guess import Guess
from axformer.wire.data_summary import DataSummary
from axformer.wire.report import FormReport, SpeedCell


@dataclass(frozen=True)
class MeasuredForm:
    """A form, or the untouched model, with what was measured of it."""

    form: Form
    speed: list[SpeedCell]
    task: Task
    sets: Sets
    """The data sets by their names in the report."""
    known: dict[str, Measured]
    """What was measured so far, by data set."""
    difference: float | None = None
    """The largest difference of a logit from the model in memory; None if they were not compared."""

    def on(self, name: str) -> Measured | None:
        """The form on a data set, measured when it is first asked for; None if there is no such data.

        A paired test takes its table (:func:`axformer.scores.task_tests.paired_test`).
        """
        data = self.sets.get(name)
        if data is not None and name not in self.known:
            self.known[name] = measure(self.form.model, self.task, data.samples)
        return self.known.get(name)


def measure_forms(
    checkpoint: Checkpoint,
    model: Any,
    forms: Sequence[Form | NotMade],
    sets: Sets,
    base: Mapping[str, Measured],
    compact: Mapping[str, Measured],
    effort: Effort,
) -> tuple[Measured, list[FormReport]]:
    """Measure the forms and the untouched model.

    Args:
        checkpoint: the untouched model.
        model: the model in memory that the forms were made from.
        forms: the forms, at least one of them made.
        sets: the data sets by their names in the report, the validation data among them.
        base: the untouched model on all of them.
        compact: the model in memory on all but the validation data.
        effort: how long each speed measurement runs.

    Returns:
        The model in memory on the validation data, and the reports of the untouched model and of each form.

    Raises:
        ArtifactError: a form returns a value that is not a finite number.
    """
    task, validation = checkpoint.task, sets["validation"]
    assert validation is not None, "every run has validation data"
    made = [form for form in forms if isinstance(form, Form)]
    in_memory, agreements = _compared(checkpoint, model, made, validation.samples)
    limits = limits_of(checkpoint.head, model.config, checkpoint.architecture.max_tokens(model.config))
    with stock_attention_in(checkpoint.model):
        loads = own_workloads(validation.samples.encoded, checkpoint.tokenizer, limits, REPORTED)
        base_cells, *cells = measure_speed([checkpoint.model, *(form.model for form in made)], loads, effort)
    measured: dict[str, MeasuredForm] = {}
    for form, speed in zip(made, cells, strict=True):
        agreement = agreements[form.name]
        known = {"validation": agreement.measured} | (dict(compact) if form.name == COMPACT else {})
        measured[form.name] = MeasuredForm(form, speed, task, sets, known, agreement.difference)
    in_its_place = Form(COMPACT, model, 0, None)  # where the compact form failed its check
    own = measured.get(COMPACT) or MeasuredForm(in_its_place, [], task, sets, {"validation": in_memory, **compact})
    untouched = Form(BASE.name, checkpoint.model, checkpoint.bytes, None)  # `axformer bench` measures how it loads
    first = MeasuredForm(untouched, base_cells, task, sets, dict(base))
    reports = [
        FormReport(name=form.name, made=False, reason=form.reason, failed=form.failed)
        if isinstance(form, NotMade)
        else form_report(measured[form.name], first, own)
        for form in forms
    ]
    return in_memory, [form_report(first, first, own), *reports]


def _compared(
    checkpoint: Checkpoint, model: Any, made: Sequence[Form], samples: Samples
) -> tuple[Measured, dict[str, Agreement]]:
    """The model in memory, and how each form agrees with it; for float32, the comparisons made with the forms are reused."""
    checked = {form.name: form.checked for form in made if form.checked is not None}
    if checkpoint.dtype is torch.float32 and len(checked) == len(made):
        return next(iter(checked.values())).expected, {name: check.agreement for name, check in checked.items()}
    return compare_outputs(model, {form.name: form.model for form in made}, checkpoint.task, samples)


def form_report(one: MeasuredForm, base: MeasuredForm | None, compact: MeasuredForm) -> FormReport:
    """The report of a form, or of the untouched model.

    Args:
        one: the form.
        base: the untouched model, if it was measured.
        compact: the compact form.
    """
    form, kind = one.form, KINDS.get(one.form.name)
    validation, test = one.on("validation"), one.on("test")
    own = compact.on("validation") if form.name not in (COMPACT, BASE.name) else None
    untouched = base.on("test") if base is not None and base is not one else None
    return FormReport(
        name=form.name,
        made=True,
        directory=None if kind is None else kind.directory,
        bytes=form.bytes,
        load_seconds=None if form.fresh is None else form.fresh.load_seconds,
        idle_bytes=None if form.fresh is None else form.fresh.idle_bytes,
        peak_bytes=None if form.fresh is None else form.fresh.peak_bytes,
        max_logit_difference=one.difference,
        validation=None if validation is None else validation.figures,
        validation_intervals=None if validation is None else validation.intervals,
        test=None if test is None else test.figures,
        test_intervals=None if test is None else test.intervals,
        test_change=None if test is None or untouched is None else compare(untouched, test),
        change=None if validation is None or own is None else compare(own, validation),
        speed=one.speed,
    )


def summary(data: DataSet, guess: Guess | None = None) -> DataSummary:
    """The report of a data set, given the figures of guessing on it."""
    return DataSummary(
        rows=len(data.rows),
        cut=data.samples.cut,
        sha256=data.rows.digest(),
        labels_as=data.samples.encoded.labels_as,
        shares=None if guess is None or guess.shares is None else dict(guess.shares),
        guess=None if guess is None else guess.figures,
    )


@contextmanager
def stock_attention_in(model: Any) -> Iterator[None]:
    """Switch a whole model to the attention implementation that users get by default, while its speed is measured."""
    own = model.config._attn_implementation
    model.config._attn_implementation = stock_attention(model)
    try:
        yield
    finally:
        model.config._attn_implementation = own

"""Every form of a result and the untouched model, measured once on every data set, for ``forms`` in ``report.json``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from axformer.data.batches import Samples, batched
from axformer.forms.agreement import Agreement, compare_outputs
from axformer.forms.form import Form, NotMade, Written
from axformer.forms.kinds import BASE, COMPACT, KINDS, ONNX_INT8
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.compact import stock_attention, untouched
from axformer.reporting.speed import Effort, measure_speed
from axformer.reporting.workloads import REPORTED, limits_of, own_workloads
from axformer.scores.decisions import classes_answered, cost_of
from axformer.scores.measured import Measured, Sets, compare, measure
from axformer.tasks.base import Task
from axformer.tasks.guess import Guess
from axformer.wire import bounds
from axformer.wire.data_summary import DataSummary
from axformer.wire.report import FormReport, SpeedCell
from axformer.wire.verdicts import JudgedRows


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


@dataclass(frozen=True)
class JudgedBy:
    """What forms are judged by, and the test of a certificate."""

    judged: JudgedRows
    names: Sequence[str] = ()
    """The model's classes by index; empty where answers are no classes."""
    p_value: Callable[[Mapping[str, Measured]], float] | None = None
    """Of the paired test on the rows of a certificate, given a form on :attr:`tested`; None without a certificate."""
    tested: Sequence[str] = ()
    """The data sets of that test."""


NOBODY = JudgedBy(JudgedRows(data=None, rows=0, points=0.0))
"""Nobody judges, as in a bench."""


@dataclass(frozen=True)
class FormsMeasured:
    """The models of a result, measured."""

    in_memory: Measured
    """The model in memory on the validation data."""
    base: FormReport
    before: list[FormReport]
    """The untouched model in ONNX."""
    forms: list[FormReport]
    one_position: SpeedCell | None
    """The untouched model with one input in the compact model's class; None if that class computes the same."""


def measure_forms(
    checkpoint: Checkpoint,
    model: Any,
    written: Written,
    sets: Sets,
    base: Mapping[str, Measured],
    compact: Mapping[str, Measured],
    by: JudgedBy,
    effort: Effort,
) -> FormsMeasured:
    """Measure the forms and the untouched model, all speeds in turns.

    Args:
        checkpoint: the untouched model.
        model: the model in memory that the forms were made from.
        written: the forms, at least one of them made, and those of the untouched model.
        sets: the data sets by their names in the report, the validation data among them. On the others int8 answers one
            input at a time, since it has one scale for all activations of a batch.
        base: the untouched model on all of them.
        compact: the model in memory on all but the validation data.
        by: what forms are judged by.
        effort: how long each speed measurement runs.

    Raises:
        ArtifactError: a form returns a value that is not a finite number.
    """
    task, validation = checkpoint.task, sets["validation"]
    assert validation is not None, "every run has validation data"
    made = [form for form in written.forms if isinstance(form, Form)]
    before = [form for form in written.before if isinstance(form, Form)]
    in_memory, agreements = _compared(checkpoint, model, made, validation.samples)
    timed = [form for form in made if not KINDS[form.name].for_gpu]
    one_position, base_cells, *cells = _in_turns(checkpoint, model, (*before, *timed), validation.samples, effort)
    speeds = {form.name: speed for form, speed in zip(timed, cells[len(before) :], strict=False)}
    first = MeasuredForm(Form(BASE.name, checkpoint.model, checkpoint.bytes, None), base_cells, task, sets, dict(base))
    others = {name: data for name, data in sets.items() if data is not None and name != "validation"}
    alone = {name: one_by_one(data, checkpoint) for name, data in others.items()}
    sets_of = {ONNX_INT8: alone | {"validation": validation}}
    measured: dict[str, MeasuredForm] = {}
    for form in made:
        agreement = agreements[form.name]
        known = {"validation": agreement.measured} | (dict(compact) if form.name == COMPACT else {})
        measured[form.name] = MeasuredForm(
            *(form, speeds.get(form.name, []), task, sets_of.get(form.name, sets), known, agreement.difference)
        )
    in_its_place = MeasuredForm(Form(COMPACT, model, 0, None), [], task, sets, {"validation": in_memory, **compact})
    compact_one = measured.get(COMPACT, in_its_place)  # where the compact form failed its check
    own = [
        MeasuredForm(form, speed, task, sets_of.get(form.name, sets), {})
        for form, speed in zip(before, cells, strict=False)
    ]
    return FormsMeasured(
        in_memory,
        form_report(first, first, compact_one, by),
        [untouched_report(one, first, by) for one in own],
        [
            FormReport(name=form.name, made=False, reason=form.reason[: bounds.TEXT], failed=form.failed)
            if isinstance(form, NotMade)
            else form_report(measured[form.name], first, compact_one, by)
            for form in written.forms
        ],
        one_position[0] if one_position else None,
    )


def _in_turns(
    checkpoint: Checkpoint, model: Any, forms: Sequence[Form], samples: Samples, effort: Effort
) -> list[list[SpeedCell]]:
    """The speed of the untouched model in the class of the compact one (empty if that computes the same), as it is, and of
    forms."""
    limits = limits_of(checkpoint.head, model.config, checkpoint.architecture.max_tokens(model.config))
    twin = untouched(checkpoint.model, checkpoint.architecture)
    models = [checkpoint.model, *(form.model for form in forms), *([] if twin is None else [twin])]
    with stock_attention_in(checkpoint.model):
        loads = own_workloads(samples.encoded, checkpoint.tokenizer, limits, REPORTED)
        cells = measure_speed(models, loads, effort)
    return [[], *cells] if twin is None else [cells[-1], *cells[:-1]]


def one_by_one(data: DataSet, checkpoint: Checkpoint) -> DataSet:
    """The same data in batches of one model row."""
    encoded, device = data.samples.encoded, str(checkpoint.model.device)
    return replace(data, samples=batched(encoded, checkpoint.tokenizer, batch_tokens=1, device=device))


def _compared(
    checkpoint: Checkpoint, model: Any, made: Sequence[Form], samples: Samples
) -> tuple[Measured, dict[str, Agreement]]:
    """The model in memory, and how each form agrees with it; for float32, the comparisons made with the forms are reused."""
    checked = {form.name: form.checked for form in made if form.checked is not None}
    if checkpoint.dtype is torch.float32 and len(checked) == len(made):
        return next(iter(checked.values())).expected, {name: check.agreement for name, check in checked.items()}
    return compare_outputs(model, {form.name: form.model for form in made}, checkpoint.task, samples)


def untouched_report(one: MeasuredForm, base: MeasuredForm, by: JudgedBy) -> FormReport:
    """The report of the untouched model in another form: its speed, and what it is judged by."""
    report = FormReport(name=one.form.name, made=True, bytes=one.form.bytes, speed=one.speed)
    return report.model_copy(update=_judgement(one, base, by))


def _judgement(one: MeasuredForm, base: MeasuredForm, by: JudgedBy) -> dict[str, Any]:
    """The fields of a form's report that it is judged by."""
    if by.judged.data is None:
        return {}
    measured, before = one.on(by.judged.data), base.on(by.judged.data)
    assert measured is not None, "there is such data"
    assert before is not None, "there is such data"
    return {
        by.judged.data: measured.figures,
        "cost": None if one is base else cost_of(before, measured, by.names),
        "classes_answered": classes_answered(measured),
        "p_value": None if by.p_value is None else by.p_value(tested_on(one, by.tested)),
    }


def tested_on(one: MeasuredForm, names: Sequence[str]) -> dict[str, Measured]:
    """A form on the data sets of a test."""
    found = {name: one.on(name) for name in names}
    return {name: measured for name, measured in found.items() if measured is not None}


def form_report(
    one: MeasuredForm, base: MeasuredForm | None, compact: MeasuredForm, by: JudgedBy = NOBODY
) -> FormReport:
    """The report of a form, or of the untouched model.

    Args:
        one: the form.
        base: the untouched model, if it was measured.
        compact: the compact form.
        by: what forms are judged by.
    """
    form, kind = one.form, KINDS.get(one.form.name)
    validation, test = one.on("validation"), one.on("test")
    own = compact.on("validation") if form.name not in (COMPACT, BASE.name) else None
    before = base.on("test") if base is not None and base is not one else None
    report = FormReport(
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
        test_change=None if test is None or before is None else compare(before, test),
        change=None if validation is None or own is None else compare(own, validation),
        speed=one.speed,
    )
    return report if base is None else report.model_copy(update=_judgement(one, base, by))


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

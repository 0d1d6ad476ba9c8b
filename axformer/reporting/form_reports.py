"""Measure every form of a result and the untouched model, for ``forms`` in ``report.json``."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from axformer.data.batches import Samples
from axformer.evaluation.plain import Predictions
from axformer.forms.agreement import Agreement, compare_outputs, predictions_of
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import BASE, COMPACT, KINDS
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.compact import stock_attention
from axformer.reporting.speed import Effort, measure_speed
from axformer.reporting.workloads import REPORTED, limits_of, own_workloads
from axformer.scores.scoring import Score, compare, score_of
from axformer.tasks.base import Task
from axformer.tasks.guess import Guess
from axformer.wire.data_summary import DataSummary
from axformer.wire.report import FormReport, SpeedCell


@dataclass(frozen=True)
class HeldOut:
    """Held-out data, with the scores on it that are known already."""

    samples: Samples
    base: Score
    """Of the untouched model."""
    compact: Score
    """Of the compact model."""

    def score_of(self, form: Form, task: Task) -> Score:
        """The score of a form."""
        if form.name == COMPACT:
            return self.compact
        return score_of(predictions_of(form.model, task, self.samples), task, self.samples)


@dataclass(frozen=True)
class FormsMeasured:
    """The measurements of all forms."""

    score: Score
    """Score of the model in memory on the validation data."""
    base: FormReport
    forms: list[FormReport]


def measure_forms(
    checkpoint: Checkpoint,
    model: Any,
    forms: Sequence[Form | NotMade],
    samples: Samples,
    base_score: Score | None,
    held_out: HeldOut | None,
    effort: Effort,
) -> FormsMeasured:
    """Measure the forms and the untouched model.

    Args:
        checkpoint: the untouched model.
        model: the model in memory that the forms were made from.
        forms: the forms, including the compact one.
        samples: the validation data.
        base_score: the untouched model's score on it.
        held_out: the held-out data, if there is any.
        effort: how long each speed measurement runs.

    Raises:
        ArtifactError: a form returns a value that is not a finite number.
    """
    made = [form for form in forms if isinstance(form, Form)]
    predictions, agreements = _compared(checkpoint, model, made, samples)
    scores = {name: score_of(form.predictions, checkpoint.task, samples) for name, form in agreements.items()}
    limits = limits_of(checkpoint.head, model.config, checkpoint.architecture.max_tokens(model.config))
    with stock_attention_in(checkpoint.model):
        loads = own_workloads(samples.encoded, checkpoint.tokenizer, limits, REPORTED)
        base_cells, *cells = measure_speed([checkpoint.model, *(form.model for form in made)], loads, effort)
    base = Form(BASE.name, checkpoint.model, checkpoint.bytes, None)  # `axformer bench` measures how it loads
    reports = {
        form.name: _with_test(
            form_report(form, speed, agreements[form.name], scores[form.name], scores[COMPACT]),
            None if held_out is None else held_out.score_of(form, checkpoint.task),
            None if held_out is None else held_out.base,
        )
        for form, speed in zip(made, cells, strict=True)
    }
    of_base = form_report(base, base_cells, None, base_score, None)
    return FormsMeasured(
        score=score_of(predictions, checkpoint.task, samples),
        base=_with_test(of_base, None if held_out is None else held_out.base, None),
        forms=[reports[form.name] if isinstance(form, Form) else not_made(form) for form in forms],
    )


def _compared(
    checkpoint: Checkpoint, model: Any, made: Sequence[Form], samples: Samples
) -> tuple[Predictions, dict[str, Agreement]]:
    """Predictions of the model in memory, and how each form agrees with them, in the checkpoint's number format.

    For float32, the comparisons that were made with the forms are reused.
    """
    checked = {form.name: form.checked for form in made if form.checked is not None}
    if checkpoint.dtype is torch.float32 and len(checked) == len(made):
        return checked[COMPACT].expected, {name: check.agreement for name, check in checked.items()}
    return compare_outputs(model, {form.name: form.model for form in made}, checkpoint.task, samples)


def form_report(
    form: Form, speed: list[SpeedCell], agreement: Agreement | None, score: Score | None, compact: Score | None
) -> FormReport:
    """The report of one form.

    Args:
        form: the form.
        speed: its cells.
        agreement: its agreement with the model in memory, if it was compared.
        score: its score on the validation data, if there is any.
        compact: the score of the compact form.
    """
    kind = KINDS.get(form.name)
    own = form.name in (COMPACT, BASE.name)
    return FormReport(
        name=form.name,
        made=True,
        directory=None if kind is None else kind.directory,
        bytes=form.bytes,
        load_seconds=None if form.fresh is None else form.fresh.load_seconds,
        idle_bytes=None if form.fresh is None else form.fresh.idle_bytes,
        peak_bytes=None if form.fresh is None else form.fresh.peak_bytes,
        max_logit_difference=None if agreement is None else agreement.difference,
        validation=None if score is None else score.figures,
        validation_intervals=None if score is None else score.intervals,
        change=None if own or score is None or compact is None else compare(compact, score),
        speed=speed,
    )


def _with_test(report: FormReport, found: Score | None, base: Score | None) -> FormReport:
    """A form's report with its figures on held-out data, and their change from those of the untouched model."""
    if found is None:
        return report
    change = None if base is None else compare(base, found)
    return report.model_copy(update={"test": found.figures, "test_intervals": found.intervals, "test_change": change})


def not_made(form: NotMade) -> FormReport:
    """The report of a form that the model does not have."""
    return FormReport(name=form.name, made=False, reason=form.reason)


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

"""Measure every form of a result beside the untouched model: what ``forms`` in ``report.json`` says."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from axformer.data.batches import Samples
from axformer.evaluation.plain import Predictions
from axformer.forms.agreement import Agreement, compare_outputs
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import BASE, COMPACT, KINDS
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.compact import stock_attention
from axformer.reporting.speed import Effort, measure_speed
from axformer.reporting.workloads import REPORTED, limits_of, own_workloads
from axformer.scores.scoring import Score, compare, score_of
from axformer.tasks.guess import Guess
from axformer.wire.data_summary import DataSummary
from axformer.wire.report import FormReport, SpeedCell


@dataclass(frozen=True)
class FormsMeasured:
    """All forms measured together."""

    score: Score
    """Of the model in memory on the validation data."""
    base: FormReport
    forms: list[FormReport]


def measure_forms(
    checkpoint: Checkpoint,
    model: Any,
    forms: Sequence[Form | NotMade],
    samples: Samples,
    base_score: Score | None,
    effort: Effort,
) -> FormsMeasured:
    """Measure forms and the untouched model.

    Args:
        checkpoint: the untouched model.
        model: the model in memory that the forms were made of.
        forms: the compact one among them.
        samples: the validation data.
        base_score: what the untouched model makes of it.
        effort: of each measurement of speed.

    Raises:
        ArtifactError: a form gives back something that is no number.
    """
    made = [form for form in forms if isinstance(form, Form)]
    predictions, agreements = _compared(checkpoint, model, made, samples)
    scores = {name: score_of(one.predictions, checkpoint.task, samples) for name, one in agreements.items()}
    limits = limits_of(checkpoint.head, model.config, checkpoint.architecture.max_tokens(model.config))
    with stock_attention_in(checkpoint.model):
        loads = own_workloads(samples.encoded, checkpoint.tokenizer, limits, REPORTED)
        base_cells, *cells = measure_speed([checkpoint.model, *(form.model for form in made)], loads, effort)
    base = Form(BASE.name, checkpoint.model, checkpoint.bytes, None)  # how it loads, `axformer bench` measures
    reports = {
        form.name: form_report(form, speed, agreements[form.name], scores[form.name], scores[COMPACT])
        for form, speed in zip(made, cells, strict=True)
    }
    return FormsMeasured(
        score=score_of(predictions, checkpoint.task, samples),
        base=form_report(base, base_cells, None, base_score, None),
        forms=[reports[form.name] if isinstance(form, Form) else not_made(form) for form in forms],
    )


def _compared(
    checkpoint: Checkpoint, model: Any, made: Sequence[Form], samples: Samples
) -> tuple[Predictions, dict[str, Agreement]]:
    """What the model in memory makes of the data, and how each form compares, in the number format of the checkpoint; as it
    was found when the forms were made, where that is float32."""
    checked = {form.name: form.checked for form in made if form.checked is not None}
    if checkpoint.dtype is torch.float32 and len(checked) == len(made):
        return checked[COMPACT].expected, {name: one.agreement for name, one in checked.items()}
    return compare_outputs(model, {form.name: form.model for form in made}, checkpoint.task, samples)


def form_report(
    form: Form, speed: list[SpeedCell], agreement: Agreement | None, score: Score | None, compact: Score | None
) -> FormReport:
    """What a report says of one form.

    Args:
        form: the form.
        speed: its cells.
        agreement: with the model in memory, where it was compared.
        score: on the validation data, where there is some.
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


def not_made(form: NotMade) -> FormReport:
    """What a report says of a form that a model does not have."""
    return FormReport(name=form.name, made=False, reason=form.reason)


def summary(data: DataSet, guess: Guess | None = None) -> DataSummary:
    """What a report says of a data set, given what guessing gets there."""
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
    """Let a whole model compute attention as its users' models do, while its speed is measured."""
    own = model.config._attn_implementation
    model.config._attn_implementation = stock_attention(model)
    try:
        yield
    finally:
        model.config._attn_implementation = own

"""What a model is measured by: the table that tests take, and forms that are asked for a set of data when it is needed."""

from typing import Any

import numpy as np
import torch

from axformer.data.reading import rows_of
from axformer.forms.form import Form
from axformer.intake.dataset import DataSet
from axformer.reporting.form_reports import MeasuredForm, form_report
from axformer.scores.measured import figures_of, measure, measure_sets, scores_of
from axformer.scores.task_tests import paired_test
from tests.axformer.tasks.test_losses import CASES, every_case, model_of, samples_of
from tests.tiny_models import tiny_head


@every_case
def test_table_figures_and_right_answers_are_those_of_the_task(name: str) -> None:
    task, samples = samples_of(name)
    measured = measure(model_of(name), task, samples)
    statistics = task.statistics(measured.answers, samples.encoded)
    np.testing.assert_array_equal(measured.table[:, 1:], statistics)
    np.testing.assert_array_equal(measured.table[:, 0], measured.losses.double().numpy())
    assert measured.figures == {"loss": measured.losses.double().mean().item(), **task.metrics(statistics)}
    assert figures_of(measured.table, task) == measured.figures
    right = task.correct(statistics)
    assert (right is None) == (measured.right is None)
    assert right is None or np.array_equal(right, measured.right)


def data_of(name: str) -> tuple[Any, DataSet]:
    task, samples = samples_of(name)
    return task, DataSet(rows_of(CASES[name].records()), samples)


def test_sets_that_were_not_given_are_null_in_the_report() -> None:
    task, data = data_of("classification")
    measured = measure_sets(model_of("classification"), task, {"validation": data, "test": None})
    assert list(measured) == ["validation"]
    scores = scores_of(measured)
    assert scores.validation == measured["validation"].figures
    assert (scores.test, scores.test_intervals, scores.confirming) == (None, None, None)


class Counting:
    """A model that counts its forward passes."""

    def __init__(self, model: Any) -> None:
        self.model, self.device, self.passes = model, model.device, 0

    def __call__(self, **inputs: torch.Tensor) -> Any:
        self.passes += 1
        return self.model(**inputs)


def test_a_form_is_measured_once_on_each_set_and_a_paired_test_can_be_asked_of_it() -> None:
    task, data = data_of("classification")
    sets = {"validation": data, "confirming": data, "test": None}
    other = Counting(tiny_head(CASES["classification"].auto_class, CASES["classification"].config(), seed=1))
    form = MeasuredForm(Form("onnx", other, 1, None), [], task, sets, {})
    base = MeasuredForm(Form("base", model_of("classification"), 1, None), [], task, sets, {})
    assert other.passes == 0, "nothing was asked"
    confirming = form.on("confirming")
    assert confirming is not None
    assert form.on("confirming") is confirming
    assert other.passes == len(data.samples.batches)
    assert form.on("test") is None
    untouched = base.on("confirming")
    assert untouched is not None
    assert untouched.right is not None
    assert confirming.right is not None
    test = paired_test(untouched.table, task, 20.0)
    fall = untouched.right.mean() - confirming.right.mean()
    assert test.p_value(untouched.table) < test.p_value(confirming.table) or fall <= 0
    report = form_report(form, base, base)
    assert report.validation == confirming.figures
    assert (report.test, report.test_change) == (None, None)

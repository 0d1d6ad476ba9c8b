"""What a report says of every task: figures with intervals, a comparison, and how the model is loaded."""

import json

import numpy as np
import pytest
import torch
from transformers.pipelines import SUPPORTED_TASKS

from axformer.architectures.heads import Head
from axformer.reporting.card_forms import loading_of
from axformer.scores.measured import compare, measure
from tests.axformer.tasks.test_losses import CASES, every_case, model_of, samples_of
from tests.tiny_models import tiny_head

WITHOUT_RIGHT_OR_WRONG = ("regression", "graded_classification", "masked_lm", "causal_lm")


@every_case
def test_two_models_are_compared_sample_by_sample(name: str) -> None:
    task, samples = samples_of(name)
    other = tiny_head(CASES[name].auto_class, CASES[name].config(), seed=1)
    before, after = (measure(model, task, samples) for model in (model_of(name), other))
    assert before.figures.keys() == before.intervals.keys() == after.figures.keys() > {"loss"}
    low, high = before.intervals["loss"]
    assert low < before.figures["loss"] < high
    comparison = compare(before, after)
    assert comparison.differences["loss"].value == after.figures["loss"] - before.figures["loss"]
    assert (comparison.mcnemar is None) == (task.name in WITHOUT_RIGHT_OR_WRONG)
    json.dumps(comparison.model_dump(mode="json"), allow_nan=False)
    back = compare(after, before)
    assert back.differences["loss"].interval == pytest.approx(
        tuple(-end for end in reversed(comparison.differences["loss"].interval))
    )
    same = compare(before, before)
    assert all(difference.interval == (0, 0) for difference in same.differences.values())
    assert same.mcnemar is None or same.mcnemar.p_value == 1.0


def test_mcnemar_counts_the_answers_that_changed() -> None:
    task, samples = samples_of("tags")
    model = tiny_head(CASES["tags"].auto_class, CASES["tags"].config(), seed=2)
    before = measure(model, task, samples)
    with torch.no_grad():  # it answers the first tag always, so it is right where the sentence has no other
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor([1.0, 0, 0, 0, 0]))
    after = measure(model, task, samples)
    test = compare(before, after).mcnemar
    assert before.right is not None
    assert after.right is not None
    expected = [all(tag in (0, -100) for tag in label) for label in samples.encoded.labels]
    assert after.right.tolist() == expected
    assert test is not None
    assert test.gained - test.lost == int(after.right.sum()) - int(before.right.sum())
    assert np.flatnonzero(~before.right & after.right).size == test.gained


@every_case
def test_a_card_loads_with_what_transformers_has(name: str) -> None:
    task, _ = samples_of(name)
    auto_class = CASES[name].auto_class
    loading = loading_of(task, Head(auto_class, type(model_of(name))))
    if task.pipeline is None:
        assert f"{auto_class.__name__}.from_pretrained" in loading.code
        assert loading.tag in ("question-answering", "multiple-choice")
    else:
        assert task.pipeline == loading.tag
        assert auto_class in SUPPORTED_TASKS[task.pipeline]["pt"]

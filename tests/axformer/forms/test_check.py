"""Comparing two models: every output counts, padding does not."""

import math
from typing import Any

import pytest
from torch import Tensor
from transformers.utils import ModelOutput

from axformer.errors import ArtifactError
from axformer.forms.check import compare_outputs
from tests.axformer.forms.uneven_data import uneven_data
from tests.family_cases import Case, checkpoint_of

TAGGING, ANSWERING, SORTING = (
    Case("bert", task) for task in ("token_classification", "question_answering", "classification")
)


class Changed:
    """A model with something done to one of its outputs."""

    def __init__(self, case: Case, name: str, change: Any) -> None:
        self._model, self._name, self._change = checkpoint_of(case).model, name, change
        self.device = self._model.device

    def __call__(self, **inputs: Tensor) -> ModelOutput:
        given = self._model(**inputs)
        return ModelOutput(given | {self._name: self._change(given[self._name], inputs["attention_mask"])})


def difference(case: Case, name: str, change: Any) -> float:
    return compare_outputs(checkpoint_of(case).model, Changed(case, name, change), uneven_data(case).samples)


def at_padding(values: Tensor, there: Tensor) -> Tensor:
    return values + 5.0 * (1 - there).view(*there.shape, *[1] * (values.dim() - 2))


def at_first_token(values: Tensor, there: Tensor) -> Tensor:
    changed = values.clone()
    changed[-1, 0] -= 0.5
    return changed


@pytest.mark.parametrize(
    ("case", "name"), [(TAGGING, "logits"), (ANSWERING, "start_logits"), (ANSWERING, "end_logits")], ids=str
)
def test_padding_does_not_count_and_tokens_do(case: Case, name: str) -> None:
    assert any((batch.inputs["attention_mask"] == 0).any() for batch in uneven_data(case).samples.batches)
    assert difference(case, name, at_padding) == 0.0
    assert difference(case, name, at_first_token) == pytest.approx(0.5, abs=1e-5)


def test_all_batches_count() -> None:
    longest = max(batch.tokens for batch in uneven_data(SORTING).samples.batches)
    assert difference(SORTING, "logits", lambda values, there: values + (there.shape[1] == longest)) == pytest.approx(
        1.0
    )


def test_what_is_no_number_is_seen() -> None:
    assert math.isnan(difference(SORTING, "logits", lambda values, there: values / 0 * 0))


def test_an_output_of_another_shape_is_refused() -> None:
    with pytest.raises(ArtifactError, match=r"logits are of shape \(\d+, 2\), the model's are of shape \(\d+, 3\)"):
        difference(SORTING, "logits", lambda values, there: values[:, :2])


def test_an_output_that_the_model_does_not_give_is_refused() -> None:
    sorting, answering = checkpoint_of(SORTING).model, checkpoint_of(ANSWERING).model
    with pytest.raises(ArtifactError, match=r"start_logits are of shape .*, the model's are missing"):
        compare_outputs(sorting, answering, uneven_data(SORTING).samples)

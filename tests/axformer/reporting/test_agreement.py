"""A form is compared with the model in memory on every logit that counts."""

import pytest
import torch

from axformer.errors import ArtifactError
from axformer.forms.agreement import compare_outputs
from axformer.scores.measured import measure
from tests.axformer.tasks.test_losses import CASES, every_case, model_of, samples_of
from tests.tiny_models import tiny_head


@every_case
def test_forms_are_compared_over_the_whole_data(name: str) -> None:
    task, samples = samples_of(name)
    model, other = model_of(name), tiny_head(CASES[name].auto_class, CASES[name].config(), seed=1)
    made, found = compare_outputs(model, {"same": model, "other": other}, task, samples)
    assert found["same"].difference == 0
    assert found["other"].difference > 0
    for one, together in ((model, made), (model, found["same"].measured), (other, found["other"].measured)):
        alone = measure(one, task, samples)
        assert torch.equal(together.losses, alone.losses)
        assert len(together.answers) == len(alone.answers)
        assert all(answer is not None for answer in together.answers)


def test_a_known_difference_is_found_where_it_is() -> None:
    task, samples = samples_of("classification")
    model = model_of("classification")
    other = tiny_head(CASES["classification"].auto_class, CASES["classification"].config())
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        other.classifier.bias[1] += 0.25
    _, found = compare_outputs(model, {"other": other}, task, samples)
    assert found["other"].difference == pytest.approx(0.25, abs=1e-6)


def test_a_form_that_gives_no_numbers_is_refused() -> None:
    task, samples = samples_of("classification")
    other = tiny_head(CASES["classification"].auto_class, CASES["classification"].config())
    with torch.no_grad():
        other.classifier.bias[0] = float("nan")
    with pytest.raises(ArtifactError, match="the form 'onnx' gives back logits that are not numbers"):
        compare_outputs(model_of("classification"), {"onnx": other}, task, samples)

"""Losses at a model's own best temperature are those of a direct search, whatever its logits were multiplied by."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from torch.nn.functional import cross_entropy

from axformer.architectures.embedder import pooled
from axformer.config import make_config
from axformer.data.columns import OWN_ANSWERS
from axformer.data.reading import rows_of
from axformer.errors import ConfigError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.methods.axformer.method import AxFormer
from axformer.scores.measured import compare, measure, tempered
from axformer.scores.temperature import BINS, TEMPERATURES, LossCurves, best_temperature, calibration_error, divided
from tests.family_cases import Case, checkpoint_of, data_of
from tests.tiny_models import tiny_config, tiny_model, tiny_rows, tiny_tokenizer

CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
SAMPLES = prepare(rows_of(tiny_rows(60)), CHECKPOINT, make_config("paper")).samples


def drawn(seed: int, sureness: float) -> dict[int, torch.Tensor]:
    """Logits of each row by its place, which agree with the labels more often than not."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(60, 2, generator=generator)
    labels = torch.tensor(SAMPLES.encoded.labels)
    return dict(enumerate(sureness * (logits + torch.nn.functional.one_hot(labels, 2))))


def best(logits: dict[int, torch.Tensor]) -> tuple[torch.Tensor, float]:
    curves = LossCurves(CHECKPOINT.task, SAMPLES)
    for batch in SAMPLES.batches:
        curves.record(SimpleNamespace(logits=torch.stack([logits[row] for row in batch.rows.tolist()])), batch)
    return curves.best()


@given(st.integers(0, 1000), st.floats(-1.5, 1.5))
@settings(deadline=None, max_examples=30)
def test_the_best_temperature_is_that_of_a_direct_search(seed: int, power: float) -> None:
    logits = drawn(seed, 10**power)
    together, labels = torch.stack([*logits.values()]).double(), torch.tensor(SAMPLES.encoded.labels)
    found = minimize_scalar(
        lambda log: cross_entropy(together / math.exp(log), labels).item(),
        bounds=(math.log(TEMPERATURES[0]), math.log(TEMPERATURES[-1])),
        method="bounded",
    )
    losses, temperature = best(logits)
    assert best_temperature(together.float(), labels) == pytest.approx(temperature)
    assert losses.double().mean().item() == pytest.approx(found.fun, abs=2e-4)
    if TEMPERATURES[1] < temperature < TEMPERATURES[-2]:
        assert math.log(temperature) == pytest.approx(found.x, abs=0.05)


@given(st.integers(0, 1000), st.floats(-0.4, 0.4))
@settings(deadline=None, max_examples=30)
def test_doubt_alone_changes_no_loss(seed: int, power: float) -> None:
    factor = 10**power
    losses, temperature = best(drawn(seed, 1.0))
    doubtful, other = best(drawn(seed, factor))
    assert torch.allclose(losses, doubtful, rtol=0.02, atol=0.01)
    assert losses.mean().item() == pytest.approx(doubtful.mean().item(), abs=2e-4)
    assert other / temperature == pytest.approx(factor, rel=0.05)


@pytest.mark.parametrize(
    "task",
    ["classification", "multi_label_classification", "token_classification", "question_answering", "multiple_choice"],
)
def test_the_losses_at_temperature_one_are_the_task_s_own(task: str) -> None:
    case = Case("bert", task)
    checkpoint = checkpoint_of(case)
    samples = prepare(data_of(case).rows, checkpoint, make_config("paper")).samples
    with torch.inference_mode():
        for batch in samples.batches:
            output = checkpoint.model(**batch.inputs)
            own = checkpoint.task.losses(output, batch)
            assert torch.equal(checkpoint.task.losses(divided(output, 1.0), batch), own)


@pytest.mark.parametrize("kind", ["regression", "embedding"])
def test_what_has_no_temperature_is_refused(kind: str) -> None:
    case = Case("bert", "regression")
    checkpoint = checkpoint_of(case)
    if kind == "embedding":
        checkpoint = from_memory(pooled(tiny_model(), checkpoint.architecture.base_class, "mean"), tiny_tokenizer())
    config = make_config("paper", {"conditions": ["temperature"]})
    with pytest.raises(ConfigError, match=f"a model for {checkpoint.task.name} answers with numbers"):
        AxFormer().check(config, checkpoint)


@given(st.integers(0, 1000), st.integers(20, 5000), st.floats(0.1, 4.0))
@settings(deadline=None, max_examples=50)
def test_confidence_that_is_the_truth_has_no_calibration_error(seed: int, rows: int, spread: float) -> None:
    generator = np.random.default_rng(seed)
    confidences = 1 - 0.5 * generator.random(rows) ** spread
    right = generator.random(rows) < confidences
    error, noise = calibration_error(confidences, right), (BINS / rows) ** 0.5
    assert 0 <= error <= noise
    by_bin = [
        abs((confidences - right)[(confidences * BINS).astype(int).clip(max=BINS - 1) == one].sum())
        for one in range(BINS)
    ]
    assert error == pytest.approx(sum(by_bin) / rows)
    always = calibration_error(np.ones(rows), right)
    assert always == pytest.approx(1 - right.mean()), "sure of every answer, wrong in so many"


def test_a_model_that_only_doubts_more_has_the_same_loss_at_its_own_temperature() -> None:
    sure = measure(CHECKPOINT.model, CHECKPOINT.task, SAMPLES)
    assert sure.logits is not None
    doubtful = replace(sure, logits=[logits / 3 for logits in sure.logits])
    assert sure.losses_at(1.0) == pytest.approx(sure.losses.double().numpy(), abs=1e-6)
    found = tempered(sure, doubtful, (1.5, 0.5))
    assert (found.value, *found.interval) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    other = measure(from_memory(tiny_model(seed=3), tiny_tokenizer()).model, CHECKPOINT.task, SAMPLES)
    gaps = other.losses_at(2.0) - sure.losses_at(1.0)
    found = tempered(sure, other, (1.0, 2.0))
    assert found.value == pytest.approx(gaps.mean())
    assert found.interval[0] <= found.value <= found.interval[1]


def _halved() -> np.ndarray:
    found = np.zeros(len(SAMPLES))
    for batch in SAMPLES.batches:
        logits = CHECKPOINT.model(**batch.inputs).logits.detach() / 2
        found[batch.rows] = logits.softmax(dim=1).amax(dim=1).numpy()
    return found


def test_a_comparison_tells_of_confidence_where_answers_are_one_of_several() -> None:
    other = from_memory(tiny_model(seed=3), tiny_tokenizer())
    measured = [measure(one.model, one.task, SAMPLES) for one in (CHECKPOINT, other)]
    found = compare(*measured).calibration
    assert found == tuple(one.calibration_error() for one in measured)
    assert found is not None
    assert min(found) > 0
    assert measured[0].calibration_error(2.0) == pytest.approx(
        calibration_error(_halved(), measured[0].right), abs=1e-6
    )
    own = replace(SAMPLES, encoded=replace(SAMPLES.encoded, labels_as=OWN_ANSWERS))
    assert measure(other.model, other.task, own).calibration_error() is None, "a model is right of its own answers"
    number = from_memory(tiny_model(tiny_config(labels=1)), tiny_tokenizer())
    rows = prepare(rows_of(tiny_rows(30, labels=1)), number, make_config("paper")).samples
    assert compare(*[measure(number.model, number.task, rows)] * 2).calibration is None

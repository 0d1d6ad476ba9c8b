"""Speed is measured on what the model takes, in turns, and ends in time."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from axformer.architectures.heads import Head
from axformer.architectures.registry import ARCHITECTURES
from axformer.data.batches import assemble
from axformer.model.compact import stock_attention
from axformer.reporting.form_reports import stock_attention_in
from axformer.reporting.speed import PATIENCE, QUICK, THOROUGH, Effort, is_enough, measure_speed, take_turns
from axformer.reporting.workloads import BATCHES, LENGTHS, MOST_LOGITS, InputLimits, limits_of, workloads
from tests.axformer.tasks.test_losses import CASES, every_case, model_of, samples_of
from tests.family_cases import Case, checkpoint_of
from tests.tiny_models import MAX_TOKENS, tiny_tokenizer

ONCE = Effort(least=1, most=1, seconds=1.0, warm_ups=1)


@every_case
def test_every_batch_size_is_measured_with_every_length_and_with_the_data_s_own(name: str) -> None:
    _, samples = samples_of(name)
    encoded = samples.encoded
    loads = workloads(encoded, tiny_tokenizer(), InputLimits(MAX_TOKENS, 0))
    assert {(load.batch, load.length) for load in loads} == {
        (batch, length) for batch in BATCHES for length in (*LENGTHS, None)
    }
    for load in loads:
        for inputs in load.batches:
            shape = inputs["input_ids"].shape
            assert shape[0] == load.batch
            assert load.length in (None, shape[-1])
            assert all(values.shape == shape for values in inputs.values())
            assert load.length is None or bool(inputs["attention_mask"].all())
    (cells,) = measure_speed([model_of(name)], loads, ONCE)
    assert [(cell.batch, cell.length) for cell in cells] == [(load.batch, load.length) for load in loads]
    for cell in cells:
        assert cell.repeats == 1
        assert 0 < cell.p50_ms <= cell.p95_ms
        assert cell.inputs_per_second == pytest.approx(1000 * cell.batch / cell.p50_ms)


@every_case
def test_own_lengths_are_the_rows_of_the_data_one_after_the_other(name: str) -> None:
    _, samples = samples_of(name)
    encoded, tokenizer = samples.encoded, tiny_tokenizer()
    (alone,) = [
        load for load in workloads(encoded, tokenizer, InputLimits(None, 0)) if (load.batch, load.length) == (1, None)
    ]
    assert len(alone.batches) == min(len(encoded.labels), 30)
    for place, inputs in enumerate(alone.batches):
        expected = assemble(encoded, [place], tokenizer, "cpu").inputs
        assert all(torch.equal(inputs[key], values) for key, values in expected.items())


@pytest.mark.parametrize("family", sorted(ARCHITECTURES))
def test_the_untouched_model_computes_attention_as_its_users_models_do(family: str) -> None:
    model = checkpoint_of(Case(family, "classification")).model
    with stock_attention_in(model):
        used = {part.config._attn_implementation for part in model.modules() if hasattr(part, "config")}
    assert used == {stock_attention(model)}


def test_what_a_model_does_not_take_is_left_out() -> None:
    _, samples = samples_of("classification")
    short = workloads(samples.encoded, tiny_tokenizer(), InputLimits(64, 0))
    assert {load.length for load in short} == {16, 64, None}
    made_up = workloads(samples.encoded, tiny_tokenizer(), InputLimits(None, 0), own=False)
    assert {load.length for load in made_up} == set(LENGTHS)
    large = workloads(samples.encoded, tiny_tokenizer(), InputLimits(None, MOST_LOGITS // 128))
    assert {(load.batch, load.length) for load in large} >= {(1, 128), (8, 16)}
    assert all(load.batch * load.tokens <= 128 for load in large)


@pytest.mark.parametrize("name", ["classification", "causal", "masked"])
def test_only_language_models_give_back_a_vocabulary_for_each_token(name: str) -> None:
    model = model_of(name)
    limits = limits_of(Head(CASES[name].auto_class, type(model)), model.config, None)
    assert limits.logits_a_token == (0 if name == "classification" else model.config.vocab_size)


class Recorder:
    """A form that remembers what it was asked."""

    device = torch.device("cpu")

    def __init__(self, name: str, asked: list[tuple[str, int]]) -> None:
        self._name, self._asked = name, asked

    def __call__(self, input_ids: Tensor) -> Any:
        self._asked.append((self._name, int(input_ids)))
        return {"logits": input_ids}


def test_models_take_turns_over_the_same_batches() -> None:
    asked: list[tuple[str, int]] = []
    models = [Recorder(name, asked) for name in "abc"]
    batches = [{"input_ids": torch.tensor(value)} for value in (0, 1)]
    seconds = take_turns(models, batches, Effort(least=4, most=4, seconds=60.0, warm_ups=2))
    assert [len(taken) for taken in seconds] == [4, 4, 4]
    counted = asked[-12:]
    rounds = [counted[start : start + 3] for start in range(0, 12, 3)]
    assert [{batch for _, batch in one} for one in rounds] == [{0}, {1}, {0}, {1}]
    assert ["".join(name for name, _ in one) for one in rounds] == ["abc", "bca", "cab", "abc"]
    assert {batch for _, batch in asked[:-12]} == {0}, "only the first batch warms up"


@pytest.mark.parametrize("effort", [QUICK, THOROUGH])
def test_a_measurement_ends_by_time_and_not_before_it_has_enough(effort: Effort) -> None:
    assert not is_enough(effort.seconds, effort.least - 1, effort)
    assert is_enough(effort.seconds, effort.least, effort)
    assert not is_enough(effort.seconds * 0.9, effort.most, effort)
    assert is_enough(PATIENCE * effort.seconds, 1, effort)


def test_a_slow_model_is_measured_once() -> None:
    taken = take_turns(
        [Recorder("slow", [])], [{"input_ids": torch.tensor(0)}], replace(THOROUGH, seconds=1e-12, least=5)
    )
    assert len(taken[0]) == 1

"""Compact models that compute their last layers at one position answer as those that compute all."""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import axformer.auto  # noqa: F401 - some heads build their base model by its configuration
from axformer.architectures.registry import ARCHITECTURES
from axformer.model.compact import compact, untouched
from axformer.plan.elements import attention, head
from axformer.plan.plan import Plan
from tests.family_cases import Case, checkpoint_of, some_plan
from tests.tiny_families import DIMENSIONS

CASES = [Case(family, "classification") for family in sorted(ARCHITECTURES)]
CASES += [Case(family, "multiple_choice") for family in ("bert", "modernbert", "xlnet")]
BERT = Case("bert", "classification")
TOLERANCE = {"rtol": 5e-6, "atol": 5e-6}
FULL = Plan.full(DIMENSIONS)


def small(case: Case, plan: Plan) -> Any:
    checkpoint = checkpoint_of(case)
    return compact(checkpoint.model, checkpoint.architecture, plan)


def batch(case: Case, side: str, rows: int = 5) -> dict[str, Tensor]:
    """Rows of unlike lengths of a case, padded on a side."""
    checkpoint = checkpoint_of(case)
    tokenizer = deepcopy(checkpoint.tokenizer)
    tokenizer.padding_side = side
    chance = torch.Generator().manual_seed(rows)
    words = [
        " ".join(f"word{int(word)}" for word in torch.randint(0, 20, (length,), generator=chance))
        for length in range(1, rows + 1)
    ]
    inputs = dict(tokenizer(words, padding=True, return_tensors="pt"))
    inputs.pop("token_type_ids", None)
    if case.task == "multiple_choice":
        return {name: values[: rows // 2 * 2].unflatten(0, (-1, 2)) for name, values in inputs.items()}
    return inputs


def at_all_positions(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(**inputs, output_hidden_states=True).logits
    return logits


def operations(model: Any, inputs: dict[str, Tensor], **more: Any) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(**inputs, **more)
    return int(counter.get_total_flops())


def at_one_position(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(**inputs).logits
    return logits


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(deadline=None, max_examples=4)
@given(seed=st.integers(0, 10_000), side=st.sampled_from(["left", "right"]))
def test_one_position_answers_as_all_do(case: Case, seed: int, side: str) -> None:
    model, inputs = small(case, some_plan(seed)), batch(case, side)
    found, expected = at_one_position(model, inputs), at_all_positions(model, inputs)
    torch.testing.assert_close(found, expected, **TOLERANCE)


@pytest.mark.parametrize("family", sorted(ARCHITECTURES))
def test_the_last_layers_cost_less_and_the_more_attention_is_gone_there(family: str) -> None:
    case = Case(family, "classification")
    inputs, plan, saved = batch(case, "right"), FULL, []
    for layer in (3, 2):
        model = small(case, plan)
        whole = operations(model, inputs, output_hidden_states=True)
        saved.append((whole - operations(model, inputs)) / whole)
        plan = plan.apply(attention(layer), top_k=2)
    assert 0 < saved[0] < saved[1]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_untouched_model_at_one_position_computes_what_a_compact_one_does(case: Case) -> None:
    checkpoint, inputs = checkpoint_of(case), batch(case, "right")
    twin = untouched(checkpoint.model, checkpoint.architecture)
    if checkpoint.head.auto_class in checkpoint.architecture.reads_behind_padding:
        assert twin is None
        return
    assert operations(twin, inputs) == operations(small(case, FULL), inputs) < operations(checkpoint.model, inputs)
    torch.testing.assert_close(
        at_one_position(twin, inputs), at_all_positions(deepcopy(checkpoint.model), inputs), **TOLERANCE
    )
    weights = {parameter.data_ptr() for parameter in checkpoint.model.parameters()}
    assert {parameter.data_ptr() for parameter in twin.parameters()} == weights


@pytest.mark.parametrize("task", ["token_classification", "question_answering", "masked_lm"])
def test_heads_that_read_all_positions_save_nothing_so(task: str) -> None:
    checkpoint = checkpoint_of(Case("bert", task))
    assert untouched(checkpoint.model, checkpoint.architecture) is None


def test_nor_do_heads_that_read_their_mean() -> None:
    model = deepcopy(checkpoint_of(Case("modernbert", "classification")).model)
    model.config.classifier_pooling = "mean"
    assert untouched(model, ARCHITECTURES["modernbert"]) is None


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_any_mask_is_understood(implementation: str) -> None:
    model, inputs = small(BERT, FULL.apply(head(3, 1), top_k=2)), batch(BERT, "right")
    model.set_attn_implementation(implementation)
    for one in (inputs, {"input_ids": inputs["input_ids"]}):
        torch.testing.assert_close(at_one_position(model, one), at_all_positions(model, one), **TOLERANCE)


def test_what_is_about_other_positions_is_whole() -> None:
    checkpoint, inputs = checkpoint_of(BERT), batch(BERT, "right")
    model, base = small(BERT, FULL), checkpoint.model.base_model
    with torch.no_grad():
        expected = base(**inputs).last_hidden_state
        found = [
            model(**inputs, output_hidden_states=True).hidden_states[-1],
            model.base_model(**inputs).last_hidden_state,
            model.train(mode=False).base_model(**inputs).last_hidden_state,
        ]
    for hidden in found:
        torch.testing.assert_close(hidden, expected, rtol=1e-5, atol=1e-5)


def test_training_computes_every_position() -> None:
    model, inputs = small(BERT, FULL).train(), batch(BERT, "right")
    model(**inputs, labels=torch.zeros(5, dtype=torch.long)).loss.backward()
    assert all(parameter.grad is not None for parameter in model.base_model.encoder.parameters())
    assert operations(model, inputs) == operations(model, inputs, output_hidden_states=True)


def test_keys_and_values_are_kept_for_who_asks() -> None:
    model, inputs = small(Case("gpt2", "classification"), FULL), batch(BERT, "right")
    with torch.no_grad():
        assert model(**inputs).past_key_values is None
        kept = model(**inputs, use_cache=True).past_key_values
    assert kept.get_seq_length() == inputs["input_ids"].shape[1]


def _coarse(projection: nn.Linear, hidden: Tensor) -> Tensor:
    return nn.functional.linear(hidden, projection.weight.round(decimals=1), projection.bias)


def test_projections_that_compute_otherwise_are_asked() -> None:
    model, inputs = small(BERT, FULL), batch(BERT, "right")
    exact = at_one_position(model, inputs)
    for projection in [module for module in model.base_model.encoder.modules() if isinstance(module, nn.Linear)]:
        projection.forward = partial(_coarse, projection)
    found, expected = at_one_position(model, inputs), at_all_positions(model, inputs)
    torch.testing.assert_close(found, expected, **TOLERANCE)
    assert not torch.allclose(found, exact, rtol=1e-4, atol=1e-4)


def test_a_failed_call_leaves_nothing_behind() -> None:
    model, inputs = small(BERT, FULL), batch(BERT, "right")
    expected = at_all_positions(model, inputs)
    with pytest.raises(IndexError):
        model(inputs["input_ids"] + 10_000)
    with torch.no_grad():
        hidden = model.base_model(**inputs).last_hidden_state
    assert not torch.equal(hidden[:, 0], hidden[:, 1])
    torch.testing.assert_close(at_one_position(model, inputs), expected, **TOLERANCE)


def test_threads_may_share_a_model() -> None:
    model, inputs = small(BERT, FULL), batch(BERT, "right")
    calls = [at_all_positions, at_one_position] * 20
    expected = at_all_positions(model, inputs)
    with ThreadPoolExecutor(4) as pool:
        for logits in pool.map(lambda call: call(model, inputs), calls):
            torch.testing.assert_close(logits, expected, **TOLERANCE)


def test_copies_are_models_of_their_own() -> None:
    model, inputs = small(BERT, some_plan(1)), batch(BERT, "right")
    twin = deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    torch.testing.assert_close(at_one_position(twin, inputs), at_all_positions(twin, inputs), **TOLERANCE)
    assert at_one_position(twin, inputs).abs().max() > 0


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", pytest.param("gpt2", marks=pytest.mark.slow)])
def test_a_compact_model_compiles_into_one_graph_also_before_its_first_call(family: str) -> None:
    """With the backend that changes nothing: what is tested is that nothing breaks the graph.

    A thread of its own has not called any model.
    """
    case = Case(family, "classification")
    model, inputs = small(case, some_plan(3)), batch(case, "right")
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(without_gradients, compiled, inputs).result()
        assert thread.submit(without_gradients, compiled, batch(case, "right", rows=3)).result().shape == (3, 3)
    with torch.no_grad():
        torch.testing.assert_close(found, at_all_positions(model, inputs), **TOLERANCE)


def without_gradients(model: Any, inputs: Any) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(**inputs).logits
        return logits

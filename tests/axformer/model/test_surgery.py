"""The law of the two forms: a masked model and the physically smaller one compute the same."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification

import axformer.auto  # noqa: F401 - registers the compact models
from axformer.architectures.registry import ARCHITECTURES, architecture_of
from axformer.errors import PlanError
from axformer.model.compact import compact
from axformer.model.masking import masked
from axformer.model.parameters import ParameterCount
from axformer.model.surgery import twin
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan
from tests.plans import plans
from tests.tiny_families import tiny_family_model
from tests.tiny_models import tiny_config, tiny_model

MODEL = tiny_model()
ARCHITECTURE = architecture_of("bert")
DIMENSIONS = ARCHITECTURE.dimensions(MODEL.config)
TOLERANCE = 1e-5


def some_inputs(seed: int, longest: int = 20) -> dict[str, torch.Tensor]:
    """A batch of five with padding."""
    torch.manual_seed(seed)
    ids = torch.randint(1, MODEL.config.vocab_size, (5, longest))
    lengths = torch.randint(1, longest + 1, (5, 1))
    mask = (torch.arange(longest) < lengths).long()
    mask[0] = 1
    return {"input_ids": ids, "attention_mask": mask}


@torch.inference_mode()
def masked_logits(plan: Plan, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    with masked(MODEL, ARCHITECTURE, plan):
        return MODEL(**inputs).logits


@pytest.mark.slow
@given(plans(DIMENSIONS), st.integers(0, 1000))
@settings(deadline=None)
def test_masked_equals_removed(plan: Plan, seed: int) -> None:
    inputs = some_inputs(seed)
    with torch.inference_mode():
        removed = compact(MODEL, ARCHITECTURE, plan)(**inputs).logits
    assert (masked_logits(plan, inputs) - removed).abs().max() < TOLERANCE


@given(plans(DIMENSIONS))
@settings(deadline=None, max_examples=25)
def test_saved_equals_loaded(tmp_path_factory: pytest.TempPathFactory, plan: Plan) -> None:
    directory: Path = tmp_path_factory.mktemp("saved")
    small, inputs = compact(MODEL, ARCHITECTURE, plan), some_inputs(0)
    small.save_pretrained(directory)
    loaded = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    with torch.inference_mode():
        assert torch.equal(loaded(**inputs).logits, small(**inputs).logits)
    assert {name: part.shape for name, part in loaded.named_parameters()} == {
        name: part.shape for name, part in small.named_parameters()
    }


@given(plans(DIMENSIONS))
@settings(deadline=None, max_examples=50)
def test_the_parameters_of_a_plan_are_those_of_its_model(plan: Plan) -> None:
    small = compact(MODEL, ARCHITECTURE, plan)
    assert ParameterCount(MODEL, ARCHITECTURE).left(plan) == sum(part.numel() for part in small.parameters())


def test_nothing_is_left_of_a_mask() -> None:
    inputs, plan = some_inputs(1), Plan.full(DIMENSIONS)
    before = masked_logits(plan, inputs)
    emptied = plan.layers[0].model_copy(update={"heads": (), "neurons": (), "hard_attention": 1})
    changed = masked_logits(Plan(layers=(emptied, *plan.layers[1:])), inputs)
    assert not torch.equal(before, changed)
    assert torch.equal(before, masked_logits(plan, inputs))


def test_an_emptied_block_still_adds_its_bias_and_a_removed_one_does_not() -> None:
    inputs, plan = some_inputs(2), Plan.full(DIMENSIONS)
    emptied = plan.layers[1].model_copy(update={"heads": ()})
    removed = plan.layers[1].model_copy(update={"heads": (), "attention": False})
    logits = [
        masked_logits(Plan(layers=(plan.layers[0], layer, plan.layers[2])), inputs) for layer in (emptied, removed)
    ]
    assert not torch.allclose(*logits)


def test_the_whole_model_is_left_as_it_is() -> None:
    before = {name: part.clone() for name, part in MODEL.state_dict().items()}
    plan = Plan.full(DIMENSIONS)
    compact(MODEL, ARCHITECTURE, Plan(layers=(plan.layers[0].model_copy(update={"heads": (1,)}), *plan.layers[1:])))
    after = MODEL.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_plan_of_another_model_is_refused() -> None:
    plan = Plan.full(Dimensions(layers=2, heads=4, hidden_size=32, intermediate_size=48))
    with pytest.raises(PlanError, match="has 2 layers, the model has 3"):
        compact(MODEL, ARCHITECTURE, plan)


def test_a_compact_model_trains() -> None:
    plan = Plan.full(DIMENSIONS)
    layers = (plan.layers[0].model_copy(update={"heads": (0, 2), "neurons": ((0, 7),)}), *plan.layers[1:])
    small = compact(tiny_model(tiny_config()), ARCHITECTURE, Plan(layers=layers)).train()
    small(**some_inputs(3), labels=torch.tensor([0, 1, 0, 1, 0])).loss.backward()
    assert all(part.grad is not None for name, part in small.named_parameters() if "token_type" not in name)


@pytest.mark.parametrize("family", sorted(ARCHITECTURES))
def test_a_twin_has_the_same_weights_and_parts_of_its_own(family: str) -> None:
    model = tiny_family_model(family)
    own, before = twin(model), [sorted(vars(part)) for part in model.modules()]
    assert [name for name, _ in own.named_modules()] == [name for name, _ in model.named_modules()]
    assert all(one is other for one, other in zip(own.parameters(), model.parameters(), strict=True))
    assert not {*own.modules()} & {*model.modules()}
    for part in list(own.modules()):
        part.register_buffer("added", torch.zeros(1), persistent=False)
        part.register_forward_hook(print)
        part.part = torch.nn.Identity()
        part.setting = 1
    assert [sorted(vars(part)) for part in model.modules()] == before
    assert not any(part._forward_hooks for part in model.modules())
    assert not [
        name for name, _ in [*model.named_buffers(), *model.named_modules()] if name.endswith(("added", "part"))
    ]
    assert not any("added" in part._non_persistent_buffers_set for part in model.modules())


def test_a_twin_calls_its_own_parts_also_where_they_hold_functions_of_each_other() -> None:
    class Hooked(torch.nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 2)
            self.forward = partial(type(self).scaled, self)
            self.scale = 1.0

        def scaled(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.scale * inputs @ self.weight

    whole, inputs = torch.nn.Sequential(Hooked()), torch.ones(1, 2)
    own: Any = twin(whole)
    own[0].scale = 3.0
    torch.testing.assert_close(own(inputs), 3.0 * whole(inputs))
    assert own[0].weight is whole[0].weight

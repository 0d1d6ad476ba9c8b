"""The encoder is the transformer layers and nothing else, counted on the models themselves."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings

import axformer.auto  # noqa: F401 - some heads build their base model by its configuration
from axformer.architectures.registry import ARCHITECTURES
from axformer.intake.sizes import read_sizes
from axformer.model.compact import compact
from axformer.model.operations import Operations
from axformer.model.parameters import ParameterCount
from axformer.plan.plan import LayerPlan, Plan
from tests.family_cases import Case, all_cases, checkpoint_of, stock_model
from tests.plans import plans
from tests.tiny_families import DIMENSIONS

FULL = Plan.full(DIMENSIONS)
NOTHING = LayerPlan(attention=False, heads=(), ffn=False, neurons=(), hard_attention=None)
EMPTY = Plan(layers=(NOTHING,) * DIMENSIONS.layers)
families = pytest.mark.parametrize("family", sorted(ARCHITECTURES))


def in_layers(model: Any) -> int:
    """Parameters of the modules that are numbered, which the layers of every family are. A shared one counts once."""
    return sum(one.numel() for name, one in model.named_parameters() if re.search(r"\.\d+\.", name))


def parameters_of(case: Case) -> ParameterCount:
    return ParameterCount(checkpoint_of(case).model, checkpoint_of(case).architecture)


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_the_encoder_of_a_whole_model_is_its_layers(case: Case) -> None:
    assert parameters_of(case).encoder(FULL) == in_layers(stock_model(case))


@families
@given(plan=plans(DIMENSIONS))
@settings(deadline=None, max_examples=8)
def test_the_encoder_of_a_cut_model_is_its_layers(family: str, plan: Plan) -> None:
    case = Case(family, "classification")
    checkpoint, count = checkpoint_of(case), parameters_of(case)
    assume(checkpoint.architecture.needs(checkpoint.model.config, plan) is None)
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    assert count.encoder(plan) == in_layers(small)
    outside = sum(one.numel() for one in small.parameters()) - in_layers(small)
    assert count.left(plan) - count.encoder(plan) == outside == count.left(FULL) - count.encoder(FULL)


@families
@given(plan=plans(DIMENSIONS))
@settings(deadline=None, max_examples=8)
def test_operations_of_the_encoder_are_those_that_a_plan_can_change(family: str, plan: Plan) -> None:
    checkpoint = checkpoint_of(Case(family, "classification"))
    counted = Operations(checkpoint.model, checkpoint.architecture, pooled=True, lengths=torch.tensor([3, 12]))
    assert 0 <= counted.encoder(plan) <= counted.left(plan)
    assert counted.left(plan) - counted.encoder(plan) == counted.left(EMPTY)
    assert counted.encoder(EMPTY) == 0


def test_layers_that_share_their_weights_count_once() -> None:
    case = Case("albert", "classification")
    checkpoint, groups = checkpoint_of(case), stock_model(case).base_model.encoder.albert_layer_groups
    uses = checkpoint.architecture.layers(checkpoint.model)
    assert len(groups) < len(uses)
    once = sum(one.numel() for one in groups.parameters())
    each = sum(one.numel() for use in uses for one in use.parameters())
    assert parameters_of(case).encoder(FULL) == once < each


def test_files_say_the_same_before_anything_is_loaded(tmp_path: Path) -> None:
    case = Case("bert", "classification")
    stock_model(case).save_pretrained(tmp_path)
    assert read_sizes(tmp_path).layer_parameters == parameters_of(case).encoder(FULL)

"""Dropped layers in plans and plan files: other plans stay as they were."""

import json

import pytest
from hypothesis import given

from axformer.errors import PlanError
from axformer.plan.diff import PlanDifference, differences
from axformer.plan.elements import Dimensions, Element, ElementKind, attention, head, layer, layer_drop, neurons, parse
from axformer.plan.plan import LayerPlan, Plan, PlanFile, PlanSource, missing_from, parse_plan_file, said_repaired
from tests.plans import plans

DIMENSIONS = Dimensions(layers=4, heads=2, hidden_size=8, intermediate_size=6)
FULL = Plan.full(DIMENSIONS)
SOURCE = PlanSource(model_type="bert", sha256="0" * 64)


def file_of(plan: Plan) -> PlanFile:
    return PlanFile(source=SOURCE, config={}, layers=plan.layers)


def test_its_id_is_that_of_the_contract() -> None:
    assert layer_drop(11).id == "layer.11.drop"
    assert parse("layer.11.drop") == Element(ElementKind.LAYER_DROP, 11)


def test_a_dropped_layer_keeps_nothing_and_stays_dropped() -> None:
    plan = FULL.apply(layer_drop(1), top_k=None)
    assert plan.dropped == (1,)
    assert plan.remaining == (0, 2, 3)
    for element in (layer(1), attention(1), head(1, 0), neurons(1, 0, 2), layer_drop(1)):
        assert not plan.holds(element)
        assert plan.apply(element, top_k=3) == plan
    assert plan.apply(parse("layer.1.hard_attention"), top_k=3) == plan
    assert FULL.apply(layer(1), top_k=None) != plan, "norms stay of a layer that is removed"
    assert FULL.apply(layer_drop(1), top_k=None, keeps_bias=True) == plan


@given(plans(DIMENSIONS))
def test_the_remaining_layers_are_a_plan_of_their_own(plan: Plan) -> None:
    rest = plan.of_remaining()
    assert not rest.dropped
    assert len(rest.layers) + len(plan.dropped) == len(plan.layers)
    assert rest.layers == tuple(kept for kept in plan.layers if not kept.dropped)


@given(plans(DIMENSIONS))
def test_a_plan_only_drops_if_the_rest_is_whole(plan: Plan) -> None:
    rest = Plan.full(Dimensions(len(plan.remaining), 2, 8, 6))
    assert plan.only_drops(DIMENSIONS) == (bool(plan.dropped) and plan.of_remaining() == rest)
    assert FULL.dropping((0, 3)).only_drops(DIMENSIONS)


@given(plans(DIMENSIONS))
def test_the_format_is_the_second_one_where_layers_are_dropped(plan: Plan) -> None:
    for is_fitted in (False, True):
        file = said_repaired(file_of(plan), is_fitted=is_fitted)
        assert file.format == ("axformer-plan/2" if is_fitted or plan.dropped else "axformer-plan/1")
        assert parse_plan_file(file.model_dump_json()) == file
        written = json.loads(file.model_dump_json())["layers"]
        assert [one.get("dropped", False) for one in written] == [kept.dropped for kept in plan.layers]
        assert all(set(one) - {"dropped"} == set(LayerPlan.model_fields) - {"dropped"} for one in written)


@pytest.mark.parametrize("change", [{"attention": True}, {"heads": [0]}, {"ffn": True}, {"neurons": [[0, 1]]}])
def test_a_dropped_layer_that_keeps_something_is_refused(change: dict[str, object]) -> None:
    text = json.loads(file_of(FULL.dropping((2,))).model_dump_json())
    text["layers"][2] |= change
    with pytest.raises(PlanError, match=r"layers\.2: .*a dropped layer keeps no block"):
        parse_plan_file(json.dumps(text))


def test_dropping_all_layers_is_refused() -> None:
    with pytest.raises(PlanError, match="the plan drops all 4 layers; at least one must stay"):
        FULL.dropping(range(4)).check_fits(DIMENSIONS)


def test_it_is_missing_as_a_whole() -> None:
    plan = FULL.dropping((1,)).apply(attention(2), top_k=None)
    assert missing_from(plan, DIMENSIONS) == [layer_drop(1), attention(2)]


def test_a_difference_names_the_layer_once() -> None:
    assert differences(FULL.dropping((1,)), FULL) == [PlanDifference(1, "layer", "dropped", "kept")]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.errors import PlanError
from axformer.plan.elements import Dimensions, attention, ffn, hard_attention, head, layer, neurons
from axformer.plan.plan import LayerPlan, Plan, PlanFile, PlanSource, parse_plan_file, removed_elements, without
from tests.plans import plans

DIMENSIONS = Dimensions(layers=3, heads=4, hidden_size=32, intermediate_size=48)
FULL = Plan.full(DIMENSIONS)


edges = st.lists(st.integers(0, 60), unique=True, max_size=12).map(sorted)


@given(edges, edges)
def test_taking_out_ranges_is_a_difference_of_sets(cuts: list[int], others: list[int]) -> None:
    ranges, taken = (tuple(zip(some[::2], some[1::2], strict=False)) for some in (cuts, others))
    before, gone = ({number for start, stop in some for number in range(start, stop)} for some in (ranges, taken))
    after = [number for start, stop in without(ranges, taken) for number in range(start, stop)]
    assert after == sorted(before - gone)


def test_each_element_changes_its_own_part() -> None:
    plan = FULL
    for element in (ffn(0), head(1, 2), neurons(1, 8, 16), hard_attention(1), attention(2)):
        plan = plan.apply(element, top_k=5)
    assert plan.layers == (
        LayerPlan(attention=True, heads=(0, 1, 2, 3), ffn=False, neurons=(), hard_attention=None),
        LayerPlan(attention=True, heads=(0, 1, 3), ffn=True, neurons=((0, 8), (16, 48)), hard_attention=5),
        LayerPlan(attention=False, heads=(), ffn=True, neurons=((0, 48),), hard_attention=None),
    )


def test_a_layer_is_both_of_its_blocks() -> None:
    assert FULL.apply(layer(1), top_k=1) == FULL.apply(ffn(1), top_k=1).apply(attention(1), top_k=1)


@given(plans(DIMENSIONS))
def test_a_plan_file_reads_as_it_was_written(plan: Plan) -> None:
    file = PlanFile(source=PlanSource(model_type="bert", sha256="00"), config={"seed": 1}, layers=plan.layers)
    assert parse_plan_file(file.model_dump_json()) == file
    assert parse_plan_file(file.model_dump_json()).plan == plan


@pytest.mark.parametrize("text", ["", "{}", '{"format": "axformer-plan/2"}', "[]"])
def test_what_is_no_plan_file_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="not a plan of format axformer-plan/1"):
        parse_plan_file(text)


@pytest.mark.parametrize(
    ("dimensions", "message"),
    [
        (Dimensions(layers=2, heads=4, hidden_size=32, intermediate_size=48), "has 3 layers, the model has 2"),
        (Dimensions(layers=3, heads=2, hidden_size=32, intermediate_size=48), "keeps head 3 of layer 0"),
        (Dimensions(layers=3, heads=4, hidden_size=32, intermediate_size=40), "keeps neurons up to 48 in layer 0"),
    ],
)
def test_a_plan_of_another_model_is_refused(dimensions: Dimensions, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        FULL.check_fits(dimensions)


def test_removed_elements_names_the_largest_only() -> None:
    accepted = [
        "layer.1.attention.head.0",
        "layer.2.ffn",
        "layer.1.attention",
        "layer.1.ffn.neurons.0:4",
        "layer.10.ffn",
    ]
    assert removed_elements([*accepted, "layer.1", "layer.2.drop"]) == ["layer.10.ffn", "layer.1", "layer.2.drop"]
    assert removed_elements(["layer.1", "layer.1.drop", "layer.10.drop"]) == ["layer.1.drop", "layer.10.drop"]
    assert removed_elements(accepted) == ["layer.2.ffn", "layer.1.attention", "layer.1.ffn.neurons.0:4", "layer.10.ffn"]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.errors import PlanError
from axformer.plan.elements import (
    Dimensions,
    Element,
    attention,
    ffn,
    halves_of,
    hard_attention,
    head,
    heads_of,
    layer,
    neuron_group,
    neuron_groups_of,
    neurons,
    parse,
)

numbers = st.integers(0, 1000)
elements = st.one_of(
    numbers.map(layer),
    numbers.map(attention),
    numbers.map(ffn),
    numbers.map(hard_attention),
    st.builds(head, numbers, numbers),
    st.builds(lambda where, start, size: neurons(where, start, start + size), numbers, numbers, st.integers(1, 99)),
    st.builds(neuron_group, numbers, st.sets(st.integers(0, 60), min_size=1)),
)


@given(elements)
def test_an_id_names_one_element(element: Element) -> None:
    assert parse(element.id) == element


def test_ids_are_those_of_the_contract() -> None:
    ids = [attention(3).id, ffn(3).id, head(3, 5).id, neurons(3, 128, 256).id, hard_attention(3).id]
    assert ids == [
        "layer.3.attention",
        "layer.3.ffn",
        "layer.3.attention.head.5",
        "layer.3.ffn.neurons.128:256",
        "layer.3.hard_attention",
    ]


def test_neurons_that_do_not_lie_side_by_side_are_listed() -> None:
    group = neuron_group(3, [9, 2, 7, 11, 10])
    assert (group.id, group.label) == ("layer.3.ffn.neurons.2,7,9:12", "layer.3.ffn.neurons (5 from 2)")
    assert neuron_group(3, [4, 5]) == neurons(3, 4, 6)


@pytest.mark.parametrize("listed", ["7,2", "2,2", "2:4,4:6", "2,3", "1:1,5", "5:3,9"])
def test_neurons_that_are_not_in_order_are_refused(listed: str) -> None:
    with pytest.raises(PlanError, match="ascending ranges that do not touch"):
        parse(f"layer.3.ffn.neurons.{listed}")


@pytest.mark.parametrize(
    "id", ["", "layer", "layer.-1.ffn", "layer.3.head.5", "layer.3.ffn.neurons.5", "layer.3.ffn\n"]
)
def test_what_is_no_id_is_refused_by_name(id: str) -> None:
    with pytest.raises(PlanError, match="is not an element id"):
        parse(id)


@given(st.integers(1, 16), st.integers(1, 400), st.integers(1, 500))
def test_parts_cover_a_block_once(heads: int, size: int, group: int) -> None:
    dimensions = Dimensions(layers=1, heads=heads, hidden_size=heads, intermediate_size=size)
    assert [part.start for part in heads_of(0, dimensions)] == list(range(heads))
    groups = neuron_groups_of(0, dimensions, group)
    assert [neuron for part in groups for neuron in range(part.start or 0, part.stop or 0)] == list(range(size))


@given(st.integers(0, 400), st.integers(1, 500))
def test_halves_cover_a_group_once_down_to_one_neuron(start: int, size: int) -> None:
    halves = halves_of(neurons(0, start, start + size))
    assert [(half.start, half.stop) for half in halves] == (
        [] if size == 1 else [(start, start + size // 2), (start + size // 2, start + size)]
    )

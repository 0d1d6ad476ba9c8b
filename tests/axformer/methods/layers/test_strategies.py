"""The strategies drop the layers that the paper's examples name, and keep their laws for any depth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.errors import ConfigError
from axformer.methods.layers.strategies import (
    ORDERS,
    Strategy,
    above,
    explicit,
    first,
    highest_first,
    lowest_first,
    symmetric,
)

BASE = 12
"""Layers of BERT-base, on which the paper's examples are."""
EXAMPLES = {
    Strategy.TOP: {2: {11, 12}, 4: {9, 10, 11, 12}, 6: {7, 8, 9, 10, 11, 12}},
    Strategy.BOTTOM: {2: {1, 2}},
    Strategy.ODD_ALTERNATE: {2: {9, 11}, 4: {5, 7, 9, 11}, 6: {1, 3, 5, 7, 9, 11}},
    Strategy.EVEN_ALTERNATE: {2: {10, 12}, 4: {6, 8, 10, 12}, 6: {2, 4, 6, 8, 10, 12}},
    Strategy.SYMMETRIC: {2: {6, 7}, 6: {4, 5, 6, 7, 8, 9}},
}
"""The dropped layers, counted from 1 as in the paper (section 5, Fig. 1), by their number."""


@pytest.mark.parametrize(
    ("strategy", "count", "dropped"),
    [(strategy, count, dropped) for strategy, rows in EXAMPLES.items() for count, dropped in rows.items()],
)
def test_the_examples_of_the_paper(strategy: Strategy, count: int, dropped: set[int]) -> None:
    if strategy is Strategy.ODD_ALTERNATE:
        assert all(layer % 2 for layer in dropped)
    found = first(ORDERS[strategy](BASE), count, BASE)
    assert {index + 1 for index in found} == dropped


@given(strategy=st.sampled_from(sorted(ORDERS)), layers=st.integers(2, 40), data=st.data())
def test_any_number_that_a_strategy_can_drop(strategy: Strategy, layers: int, data: st.DataObject) -> None:
    order = ORDERS[strategy](layers)
    assert len(set(order)) == len(order)
    count = data.draw(st.integers(0, min(len(order), layers - 1)))
    dropped = first(order, count, layers)
    assert len(dropped) == count
    assert list(dropped) == sorted(set(dropped))
    assert set(dropped) <= set(range(layers))
    if count:
        assert set(first(order, count - 1, layers)) < set(dropped), "fewer are among more"


@given(layers=st.integers(2, 40), data=st.data())
def test_symmetric_keeps_as_many_at_both_ends_or_one_more_at_the_bottom(layers: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, layers - 1))
    dropped = first(symmetric(layers), count, layers)
    assert list(dropped) == list(range(dropped[0], dropped[0] + count)), "they lie side by side"
    below, over = dropped[0], layers - 1 - dropped[-1]
    assert below - over == (layers - count) % 2


def test_alternates_share_the_layers_among_them() -> None:
    odd, even = (set(ORDERS[strategy](7)) for strategy in (Strategy.ODD_ALTERNATE, Strategy.EVEN_ALTERNATE))
    assert (odd, even) == ({0, 2, 4, 6}, {1, 3, 5})


@pytest.mark.parametrize(("order", "count", "most"), [([5, 4, 3, 2, 1, 0], 6, 5), ([5, 3, 1], 4, 3), ([5, 4], -1, 2)])
def test_more_than_there_is_is_refused(order: list[int], count: int, most: int) -> None:
    with pytest.raises(ConfigError, match=rf"{count} layers cannot be dropped: of 6 layers .* 0 to {most}$"):
        first(order, count, 6)


def test_layers_that_a_user_names() -> None:
    assert first(explicit([4, 1], 6), 2, 6) == (1, 4)
    assert first(explicit([4, 1], 6), 1, 6) == (4,)
    with pytest.raises(ConfigError, match="layer 6 cannot be dropped: the model has layers 0 to 5"):
        explicit([1, 6], 6)
    with pytest.raises(ConfigError, match="layer -1 cannot be dropped"):
        explicit([-1], 6)
    with pytest.raises(ConfigError, match="layer 2 is to be dropped twice"):
        explicit([2, 1, 2], 6)


@given(st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=1, max_size=12), st.floats(0, 1))
def test_scores_order_all_layers(scores: list[float], threshold: float) -> None:
    low, high = lowest_first(scores), highest_first(scores)
    assert sorted(low) == sorted(high) == list(range(len(scores)))
    assert [scores[index] for index in low] == sorted(scores)
    assert [scores[index] for index in high] == sorted(scores, reverse=True)
    over = above(scores, threshold)
    assert over == high[: len(over)]
    assert sorted(over) == [index for index, score in enumerate(scores) if score > threshold]


def test_of_equal_scores_the_higher_layer_leaves_first() -> None:
    assert lowest_first([1.0, 1.0, 0.0]) == [2, 1, 0]
    assert highest_first([1.0, 1.0, 0.0]) == [1, 0, 2]

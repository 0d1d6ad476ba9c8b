from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.config import Order, PassConfig, PublishedConfig, make_config
from axformer.errors import ConfigError, PlanError
from axformer.methods.axformer.ordering import block_order, inspection_order
from axformer.plan.blocks import Block, BlockKind
from axformer.plan.elements import Dimensions, attention, ffn, parse
from axformer.plan.trial import Phase
from axformer.scores.importance import Ranked, owners_of, scores_of
from tests.axformer.methods.test_any_method import CHECKPOINT, run_of

named_orders = st.sampled_from([order for order in Order if order is not Order.EXPLICIT])


def dimensions(layers: int) -> Dimensions:
    return Dimensions(layers=layers, heads=2, hidden_size=4, intermediate_size=8)


@given(named_orders, st.integers(1, 30), st.integers(0, 5))
def test_every_order_inspects_every_block_once(order: Order, layers: int, seed: int) -> None:
    blocks = block_order(dimensions(layers), PassConfig(order=order, seed=seed))
    assert len(blocks) == 2 * layers
    assert set(blocks) == {block for index in range(layers) for block in (ffn(index), attention(index))}


@given(st.integers(1, 30))
def test_the_default_goes_from_top_to_bottom_ffn_first(layers: int) -> None:
    blocks = block_order(dimensions(layers), PassConfig())
    assert blocks == [block for index in reversed(range(layers)) for block in (ffn(index), attention(index))]


def test_table_seven_changes_the_order_of_linguistic_acceptability_alone() -> None:
    named = block_order(dimensions(6), PassConfig(order=Order.LINGUISTIC_ACCEPTABILITY))
    assert [block.layer for block in named[::2]] == [5, 4, 1, 0, 3, 2]
    assert named == block_order(dimensions(6), PassConfig(order=Order.TOP_BOTTOM_MIDDLE))
    assert block_order(dimensions(6), PassConfig(order=Order.ENTAILMENT)) == block_order(dimensions(6), PassConfig())


def test_a_random_order_is_its_seed() -> None:
    orders = [block_order(dimensions(6), PassConfig(order=Order.RANDOM, seed=seed)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_an_explicit_order_is_taken_as_it_stands() -> None:
    config = make_config("published", {"order": "explicit", "explicit_order": ["layer.0.attention", "layer.5.ffn"]})
    assert block_order(dimensions(6), config) == [attention(0), ffn(5)]


@pytest.mark.parametrize("id", ["layer.6.ffn", "layer.0.attention.head.1", "layer.0"])
def test_an_explicit_order_names_blocks_of_the_model(id: str) -> None:
    config = make_config("published", {"order": "explicit", "explicit_order": [id]})
    with pytest.raises(ConfigError, match=f"explicit_order names '{id}'"):
        block_order(dimensions(6), config)


def test_an_explicit_order_holds_ids() -> None:
    with pytest.raises(PlanError, match="'top' is not an element id"):
        block_order(dimensions(6), make_config("published", {"order": "explicit", "explicit_order": ["top"]}))


def test_layers_first_inspects_each_layer_once_in_the_order_of_its_blocks() -> None:
    elements = inspection_order(dimensions(3), PublishedConfig(inspect_layers_first=True))
    assert [element.id for element in elements] == ["layer.2", "layer.1", "layer.0"]


def test_the_least_important_block_is_inspected_first() -> None:
    figures = [5.0, 1.0, 4.0, 0.5, 2.0, 2.0]
    importance = {Block.at(number).element: figure for number, figure in enumerate(figures)}
    blocks = block_order(dimensions(3), PassConfig(order=Order.IMPORTANCE), importance)
    assert blocks == [ffn(1), ffn(0), ffn(2), attention(2), attention(1), attention(0)]
    assert set(blocks) == set(block_order(dimensions(3), PassConfig(order=Order.IMPORTANCE)))


def test_groups_by_importance_hold_every_neuron_once_the_least_important_first() -> None:
    run = run_of(make_config("paper", {"neuron_groups": "ranked", "neuron_group_size": 7, "refine_margin": 100}))
    tried = [parse(trial.element) for trial in run.trials() if trial.phase is Phase.NEURONS and trial.element]
    scores = scores_of(
        "taylor",
        Ranked(CHECKPOINT, run.deciding.samples, nullcontext, share=0.0, seed=0, owners=owners_of(CHECKPOINT)),
    )
    for layer in range(CHECKPOINT.dimensions.layers):
        groups = [[n for low, high in one.ranges for n in range(low, high)] for one in tried if one.layer == layer]
        if groups:  # the block was kept, so its parts were tried
            means = [scores[Block(layer, BlockKind.FFN)][group].mean() for group in groups]
            assert means == sorted(means)
            assert sorted(neuron for group in groups for neuron in group) == list(
                range(CHECKPOINT.dimensions.intermediate_size)
            )
    assert tried


@pytest.mark.parametrize("other", [{"repair": "refit"}, {"neuron_search": "bisect"}])
def test_ranked_groups_exclude_what_groups_otherwise(other: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="neuron_groups=ranked"):
        make_config("published", {"neuron_groups": "ranked", **other})

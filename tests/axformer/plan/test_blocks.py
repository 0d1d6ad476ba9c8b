"""Laws of blocks."""

from hypothesis import given
from hypothesis import strategies as st

from axformer.plan.blocks import Block, BlockKind, all_blocks, blocks_of_layer
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan

DIMENSIONS = Dimensions(layers=4, heads=3, hidden_size=6, intermediate_size=7)


@given(st.integers(0, 200), st.sampled_from(BlockKind))
def test_a_block_has_the_number_that_stored_formats_give_it(layer: int, kind: BlockKind) -> None:
    block = Block(layer, kind)
    assert block.number == 2 * layer + (kind is BlockKind.FFN)
    assert Block.at(block.number) == block
    assert block in blocks_of_layer(layer)
    assert block.element.id == f"layer.{layer}.{kind.value}"


def test_blocks_compare_and_run_from_the_bottom_up() -> None:
    blocks = all_blocks(DIMENSIONS.layers)
    assert [block.number for block in blocks] == list(range(8))
    assert max(blocks[:-1]) < blocks[-1]
    assert sorted(set(blocks)) == blocks


@given(st.sampled_from(all_blocks(DIMENSIONS.layers)), st.sets(st.integers(0, 2)))
def test_a_plan_with_some_units_of_a_block_holds_just_these_there(block: Block, units: set[int]) -> None:
    full = Plan.full(DIMENSIONS)
    plan = block.with_units(full, sorted(units))
    assert list(block.units(plan)) == sorted(units)
    assert block.is_kept_in(plan.layers[block.layer])
    for other in all_blocks(DIMENSIONS.layers):
        if other != block:
            assert list(other.units(plan)) == list(range(other.size(DIMENSIONS)))
            assert other.part_of(plan.layers[other.layer]) == other.part_of(full.layers[other.layer])
    assert (block.part_of(plan.layers[block.layer]) == block.part_of(full.layers[block.layer])) == (
        len(units) == block.size(DIMENSIONS)
    )

"""The pictures of a level table hold every measured figure, and frame what was kept."""

from xml.etree import ElementTree

from axformer.plan.blocks import Block, BlockKind
from axformer.plan.elements import Dimensions
from axformer.plan.levels import sizes_of
from axformer.plan.plan import Plan
from axformer.plan.trial import BlockLevels, Trial, Verdict
from axformer.reporting.page import level_pictures
from tests.axformer.drawing.test_chart import some_trial

SVG = "{http://www.w3.org/2000/svg}"
DIMENSIONS = Dimensions(layers=2, heads=2, hidden_size=8, intermediate_size=40)
BASE = some_trial(0, None, 0.6, 0.6, Verdict.BASE)


def traced() -> list[Trial]:
    """A trace whose second trial has a level table; the divergence of block b with s units less is (b + 1) s thousandths."""
    levels = []
    for block in range(4):
        sizes = sizes_of(Block.at(block), DIMENSIONS)
        cost = tuple((block + 1) * (sizes[0] - size) / 1000 for size in sizes)
        levels.append(BlockLevels(leaving=tuple(range(sizes[0])), divergences=cost))
    return [BASE, BASE.model_copy(update={"seq": 1, "levels": tuple(levels)})]


def test_every_figure_is_there_and_what_was_kept_has_a_frame() -> None:
    neurons = sizes_of(Block(0, BlockKind.FFN), DIMENSIONS)
    plan = Block(0, BlockKind.ATTENTION).with_units(Plan.full(DIMENSIONS), [1])
    plan = Block(1, BlockKind.FFN).with_units(plan, range(neurons[3]))
    heads, wide = (ElementTree.fromstring(one) for one in level_pictures(traced(), plan, DIMENSIONS))
    told = [one.text for one in heads.iter(f"{SVG}title")]
    for layer, left, cost in ((0, 2, "0.00"), (0, 1, "1.00"), (0, 0, "2.00"), (1, 1, "3.00"), (1, 0, "6.00")):
        assert f"layer {layer}, heads left {left}: {cost}" in told
    cells = [one for one in wide.iter(f"{SVG}rect") if one.get("class") == "heat"]
    assert len(cells) == 2 * len(neurons)
    frames = [one for one in wide.iter(f"{SVG}rect") if one.get("class") == "ring"]
    top, bottom = cells[3], cells[len(neurons)]
    assert [(one.get("x"), one.get("y")) for one in frames] == [(one.get("x"), one.get("y")) for one in (top, bottom)]


def test_a_trace_without_a_table_or_with_one_of_another_model_has_no_picture() -> None:
    full = Plan.full(DIMENSIONS)
    assert level_pictures([BASE], full, DIMENSIONS) == []
    other = Dimensions(layers=3, heads=2, hidden_size=8, intermediate_size=40)
    assert level_pictures(traced(), Plan.full(other), other) == []

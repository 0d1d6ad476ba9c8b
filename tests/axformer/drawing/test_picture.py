"""The picture of a plan shows every head and every neuron once, as the plan has it."""

import random
from collections import Counter
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from axformer.drawing.picture import describe_plan, picture
from axformer.plan.elements import Dimensions, ElementKind, parse
from axformer.plan.plan import Plan
from axformer.plan.trial import Verdict
from tests.axformer.drawing.test_chart import assert_readable, some_trial
from tests.family_cases import some_plan

SVG = "{http://www.w3.org/2000/svg}"
SIZES = [Dimensions(3, 4, 32, 48), Dimensions(12, 12, 768, 3072), Dimensions(2, 32, 128, 31)]


def cells_of(text: str, dimensions: Dimensions) -> dict[str, Counter[tuple[int, int]]]:
    """How often each head (layer, head) and each neuron (layer, -1 - neuron) is drawn, by class; ``block``: a removed one."""
    cells: dict[str, Counter[tuple[int, int]]] = {}
    for part in ElementTree.fromstring(text).iter(f"{SVG}rect"):
        if "data-element" not in part.attrib:
            continue
        element = parse(part.attrib["data-element"])
        heads = range(element.start or 0, dimensions.heads if element.stop is None else element.stop)
        neurons = range(element.start or 0, dimensions.intermediate_size if element.stop is None else element.stop)
        is_attention = element.kind in (ElementKind.HEAD, ElementKind.ATTENTION)
        found = [(element.layer, head) for head in heads] if is_attention else []
        found += [] if is_attention else [(element.layer, -1 - neuron) for neuron in neurons]
        is_block = element.kind in (ElementKind.ATTENTION, ElementKind.FFN)
        cells.setdefault("block" if is_block else part.attrib["class"], Counter()).update(found)
    return cells


@pytest.mark.parametrize("dimensions", SIZES, ids=str)
@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_and_what_is_removed_is_all_of_the_model(seed: int, dimensions: Dimensions) -> None:
    plan = some_plan(seed, dimensions)
    cells = cells_of(picture(plan, dimensions), dimensions)
    drawn = sum(cells.values(), Counter())
    units = [*range(dimensions.heads), *(-1 - neuron for neuron in range(dimensions.intermediate_size))]
    assert drawn == Counter((layer, unit) for layer in range(dimensions.layers) for unit in units)
    kept = Counter[tuple[int, int]]()
    hard = Counter[tuple[int, int]]()
    for index, layer in enumerate(plan.layers):
        (kept if layer.hard_attention is None else hard).update((index, head) for head in layer.heads)
        kept.update((index, -1 - neuron) for start, stop in layer.neurons for neuron in range(start, stop))
    assert cells.get("kept", Counter()) == kept
    assert cells.get("hard", Counter()) == hard
    hollow = {
        (index, block)
        for index, layer in enumerate(plan.layers)
        for block in (0, 1)
        if not (layer.attention, layer.ffn)[block]
    }
    assert {(layer, int(unit < 0)) for layer, unit in cells.get("block", Counter())} == hollow


def test_parts_stand_in_order_within_the_picture() -> None:
    dimensions = SIZES[1]
    root = ElementTree.fromstring(picture(some_plan(1, dimensions), dimensions))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    rows: dict[float, list[tuple[float, float]]] = {}
    for part in root.iter(f"{SVG}rect"):
        x, y, wide, high = (float(part.attrib[name]) for name in ("x", "y", "width", "height"))
        assert wide > 0
        if x < 0:  # a sign of the legend, which stands around its middle
            continue
        assert x + wide <= width
        assert y + high <= height
        if "data-element" in part.attrib and parse(part.attrib["data-element"]).start is not None:
            rows.setdefault(y, []).append((x, x + wide))
    for parts in rows.values():
        assert all(left[1] <= right[0] + 0.01 for left, right in pairwise(parts))


def test_it_can_be_read_without_eyes_and_in_the_dark() -> None:
    plan = some_plan(random.Random(4).randrange(100), SIZES[0])
    assert_readable(picture(plan, SIZES[0]), "plan", describe_plan(plan, SIZES[0]))


def test_a_whole_model_is_described_as_whole() -> None:
    dimensions = SIZES[0]
    told = describe_plan(Plan.full(dimensions), dimensions)
    assert told == (
        "3 layers; 12 of 12 heads kept; 144 of 144 neurons kept; removed blocks: none; hard attention in layers: none"
    )
    assert 'class="gone" data-element' not in picture(Plan.full(dimensions), dimensions)


@pytest.mark.parametrize("has_trials", [False, True])
def test_a_dropped_layer_is_shown_as_one(has_trials: bool) -> None:
    dimensions = SIZES[0]
    plan = Plan.full(dimensions).dropping((1,))
    assert describe_plan(plan, dimensions) == (
        "3 layers, dropped: 1; 8 of 12 heads kept; 96 of 144 neurons kept; removed blocks: none; "
        "hard attention in layers: none"
    )
    trials = [some_trial(1, "layer.1.drop", 0.5, 0.6, Verdict.ACCEPT)] if has_trials else None
    text = picture(plan, dimensions, trials)
    assert text.count(">dropped</text>") == 2, "beside its heads and beside its neurons"
    assert text.count(">removed</text>") == 1, "in the legend"
    parts = [part for part in ElementTree.fromstring(text).iter(f"{SVG}rect") if "data-element" in part.attrib]
    gone = {part.attrib["data-element"] for part in parts if part.attrib["class"] in ("gone", "gap")}
    assert gone == ({"layer.1.attention", "layer.1.ffn"} if has_trials else {"layer.1.drop"})


def test_with_the_trials_every_element_tells_what_became_of_it() -> None:
    dimensions = Dimensions(2, 4, 32, 48)
    tried = {
        "layer.1": Verdict.REJECT,
        "layer.1.hard_attention": Verdict.ACCEPT,
        "layer.1.attention": Verdict.REFINE,
        "layer.1.attention.head.2": Verdict.ACCEPT,
        "layer.1.attention.head.3": Verdict.REJECT,
        "layer.1.ffn": Verdict.REJECT,
        "layer.0": Verdict.ACCEPT,
    }
    trials = [some_trial(seq, element, 0.5, 0.6, verdict) for seq, (element, verdict) in enumerate(tried.items(), 1)]
    plan = Plan.full(dimensions)
    for element, verdict in tried.items():
        plan = plan.apply(parse(element), top_k=3) if verdict is Verdict.ACCEPT else plan
    text = picture(plan, dimensions, trials)
    shown = {
        part.attrib["data-element"]: (part.attrib["class"], str(part.findtext(f"{SVG}title")).split(": ")[1])
        for part in ElementTree.fromstring(text).iter(f"{SVG}rect")
        if "data-element" in part.attrib
    }
    measured = "loss 0.5000, least before 0.6000, helped 4 of 8"
    assert shown == {
        "layer.1.hard_attention": ("hard", f"hard attention, {measured}"),
        "layer.1.attention": ("opened", f"kept, its parts tried, {measured}"),
        "layer.1.attention.head.0": ("untried", "not tried yet"),
        "layer.1.attention.head.1": ("untried", "not tried yet"),
        "layer.1.attention.head.2": ("gone", f"removed, {measured}"),
        "layer.1.attention.head.3": ("kept", f"kept, {measured}"),
        "layer.1.ffn": ("kept", f"kept, {measured}"),
        "layer.1.ffn.neurons.0:48": ("kept", "kept with its block"),
        "layer.0.hard_attention": ("untried", "not tried yet"),
        "layer.0.attention": ("gone", f"removed, {measured}"),
        "layer.0.ffn": ("gone", f"removed, {measured}"),
    }
    assert ">3/4, K 3<" in text

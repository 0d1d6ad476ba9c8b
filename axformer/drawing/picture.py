"""A plan as a picture, after figure 3 of the AxFormer paper: a row a layer, attention by heads beside the FFN by neurons.

Every part carries the id of its element in ``data-element`` and a tooltip.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from axformer.drawing.marks import ACCENT, GOOD, KEPT
from axformer.drawing.svg import Canvas, words
from axformer.plan.elements import Dimensions
from axformer.plan.elements import attention as attention_of
from axformer.plan.elements import ffn as ffn_of
from axformer.plan.elements import head as head_of
from axformer.plan.elements import neurons as neurons_of
from axformer.plan.plan import LayerPlan, Plan

_ROW, _BLOCK = 26, 18
_TOP, _BOTTOM = 64, 82
_LEFT, _WIDTH, _SIDE = 54, 260, 96
_FFN = _LEFT + _WIDTH + _SIDE
_TOTAL = _FFN + _WIDTH + _SIDE
_DASHES = "stroke-dasharray:3 2"
_SHADES = {
    "kept": (f"fill:{KEPT.light}", f"fill:{KEPT.dark}"),
    "hard": (f"fill:{ACCENT.light}", f"fill:{ACCENT.dark}"),
    "removed": (f"fill:none;stroke:{GOOD.light};{_DASHES}", f"fill:none;stroke:{GOOD.dark};{_DASHES}"),
    "gone": (f"fill:none;stroke:{GOOD.light};{_DASHES}", f"fill:none;stroke:{GOOD.dark};{_DASHES}"),
    "gap": ("fill:none", "fill:none"),
}
"""A removed block, a removed part, and one too thin for an outline."""


@dataclass(frozen=True)
class _Part:
    """A run of heads or neurons that is kept or gone as one."""

    element: str
    start: int
    stop: int
    kept: bool


def picture(plan: Plan, dimensions: Dimensions) -> str:
    """The SVG text of a plan for a model with these dimensions, the last layer on top as in the paper."""
    height = _TOP + _ROW * dimensions.layers + _BOTTOM
    rows = (line for index, layer in enumerate(plan.layers) for line in _row(index, layer, dimensions))
    canvas = Canvas("plan", "What is left of each layer", describe_plan(plan, dimensions), _TOTAL, height, _SHADES)
    heading = words(_LEFT, 26, "What is left of each layer", "ink title")
    return canvas.drawn([heading, *_headings(dimensions), *rows, *_legend(height - _BOTTOM + 22)])


def describe_plan(plan: Plan, dimensions: Dimensions) -> str:
    """The picture in words."""
    heads = sum(len(layer.heads) for layer in plan.layers)
    neurons = sum(layer.neuron_count for layer in plan.layers)
    gone = [attention_of(index).id for index, layer in enumerate(plan.layers) if not layer.attention]
    gone += [ffn_of(index).id for index, layer in enumerate(plan.layers) if not layer.ffn]
    hard = [str(index) for index, layer in enumerate(plan.layers) if layer.hard_attention is not None]
    parts = [
        f"{dimensions.layers} layers",
        f"{heads} of {dimensions.layers * dimensions.heads} heads kept",
        f"{neurons} of {dimensions.layers * dimensions.intermediate_size} neurons kept",
        f"removed blocks: {', '.join(gone) or 'none'}",
        f"hard attention in layers: {', '.join(hard) or 'none'}",
    ]
    return "; ".join(parts)


def _headings(dimensions: Dimensions) -> Iterator[str]:
    yield words(_LEFT, 50, f"attention, {dimensions.heads} heads", "ink")
    yield words(_FFN, 50, f"FFN, {dimensions.intermediate_size:,} neurons", "ink")
    yield words(_LEFT - 10, 50, "layer", "ink", "end")


def _row(index: int, layer: LayerPlan, dimensions: Dimensions) -> Iterator[str]:
    y = _TOP + _ROW * (dimensions.layers - 1 - index)
    yield words(_LEFT - 10, y + 13, str(index), "ink", "end")
    if layer.attention:
        shade = "kept" if layer.hard_attention is None else "hard"
        yield from _block(_head_parts(index, layer, dimensions), dimensions.heads, _LEFT, y, shade)
        yield words(_LEFT + _WIDTH + 8, y + 13, _attention_note(layer, dimensions), "ink")
    else:
        yield from _hollow(attention_of(index).id, _LEFT, y)
    if layer.ffn:
        parts = _neuron_parts(index, layer, dimensions)
        yield from _block(parts, dimensions.intermediate_size, _FFN, y, "kept")
        yield words(_FFN + _WIDTH + 8, y + 13, _percent(layer.neuron_count, dimensions.intermediate_size), "ink")
    else:
        yield from _hollow(ffn_of(index).id, _FFN, y)


def _attention_note(layer: LayerPlan, dimensions: Dimensions) -> str:
    hard = "" if layer.hard_attention is None else f", K {layer.hard_attention}"
    return f"{len(layer.heads)}/{dimensions.heads}{hard}"


def _percent(kept: int, total: int) -> str:
    """A share in per cent; 0 and 100 mean none and all."""
    return f"{min(max(round(100 * kept / total), int(kept > 0)), 100 - int(kept < total))} %"


def _head_parts(index: int, layer: LayerPlan, dimensions: Dimensions) -> list[_Part]:
    heads = range(dimensions.heads)
    return [_Part(head_of(index, place).id, place, place + 1, place in layer.heads) for place in heads]


def _neuron_parts(index: int, layer: LayerPlan, dimensions: Dimensions) -> list[_Part]:
    edges = [0, *(edge for bounds in layer.neurons for edge in bounds), dimensions.intermediate_size]
    runs = [(start, stop, bool(place % 2)) for place, (start, stop) in enumerate(pairwise(edges))]
    return [_Part(neurons_of(index, start, stop).id, start, stop, kept) for start, stop, kept in runs if start < stop]


def _block(parts: Sequence[_Part], total: int, x: int, y: int, shade: str) -> Iterator[str]:
    """The parts of a block that stands, side by side; a hair between those that are wide enough."""
    for part in parts:
        left, right = x + _WIDTH * part.start / total, x + _WIDTH * part.stop / total
        gap = 1.5 if right - left > 5 else 0
        box = f'x="{left:.2f}" y="{y}" width="{right - left - gap:.2f}" height="{_BLOCK}"'
        gone = "gone" if gap else "gap"
        yield (
            f'<rect class="{shade if part.kept else gone}" data-element="{part.element}" {box} rx="{min(2, gap)}">'
            f"<title>{part.element}: {'kept' if part.kept else 'removed'}</title></rect>"
        )


def _hollow(element: str, x: int, y: int) -> Iterator[str]:
    yield (
        f'<rect class="removed" data-element="{element}" x="{x + 0.5}" y="{y + 0.5}" width="{_WIDTH - 1.5}" '
        f'height="{_BLOCK - 1}" rx="2"><title>{element}: removed</title></rect>'
    )
    yield words(x + _WIDTH + 8, y + 13, "removed", "faint")


def _legend(y: int) -> Iterator[str]:
    entries = (
        ("kept", "kept"),
        ("removed", "removed"),
        ("hard", "kept, with hard attention"),
    )
    x = _LEFT
    for shade, meaning in entries:
        yield f'<rect class="{shade}" x="{x + 0.5}" y="{y - 10.5}" width="21" height="13" rx="2"/>'
        yield words(x + 29, y, meaning, "ink")
        x += 60 + 7 * len(meaning)
    yield words(_LEFT, y + 24, "Heads and neurons stand at their own places; beside them, how many are left.", "faint")
    yield words(_LEFT, y + 42, "K: attention probabilities that hard attention keeps for each query.", "faint")

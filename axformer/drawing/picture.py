"""A plan as a picture, after figure 3 of the AxFormer paper: one row per layer, heads on the left and neurons on the right.

Every part has the id of its element in ``data-element`` and a tooltip. With the trials of the pass, the picture also shows the
fate of each element, and squares for blocks and hard attention before their parts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from axformer.drawing.fates import FATES, DrawnPart, Fates, planned
from axformer.drawing.marks import DrawnTrial
from axformer.drawing.svg import EDGE, WIDTH, Canvas, legend, line_of, notes, words
from axformer.plan.elements import Dimensions, attention, ffn, label_of
from axformer.plan.plan import LayerPlan, Plan

_ROW, _BLOCK = 26, 18
_SQUARE = 24
"""Width of the square of a block."""
_NARROW = 600
"""Below this width, the labels of rows are short."""
_PLAN = ("kept", "gone", "hard")
_NOTES = (
    "Heads and neurons stand at their own places; beside them, how many are left.",
    "K: attention probabilities that hard attention keeps for each query.",
)
_SQUARES = "The squares, from left to right: hard attention, the attention block, the FFN block."


@dataclass(frozen=True)
class _Columns:
    """The horizontal layout of every row."""

    width: int
    square: int
    """Width of a square with its gap, or 0."""

    @property
    def is_narrow(self) -> bool:
        return self.width < _NARROW

    @property
    def left(self) -> int:
        """Right end of the layer's name."""
        return 30 if self.is_narrow else 62

    @property
    def _side(self) -> int:
        """Space for the label after a block."""
        return 50 if self.is_narrow else 96

    @property
    def strip(self) -> float:
        """Width of a block's parts."""
        return (self.width - self.left - 2 * self._side - 3 * self.square) / 2

    @property
    def attention(self) -> float:
        return self.left + 2 * self.square

    @property
    def ffn(self) -> float:
        return self.attention + self.strip + self._side + self.square


def picture(
    plan: Plan,
    dimensions: Dimensions,
    trials: Sequence[DrawnTrial] | None = None,
    width: int = WIDTH,
    *,
    is_crowded: bool = False,
) -> str:
    """The SVG text of a plan for a model with these dimensions, the last layer on top as in the paper.

    Args:
        plan: what is left.
        dimensions: of the model before the pass.
        trials: of the pass; the last one of each element counts. Without them the plan alone is shown.
        width: units of the picture.
        is_crowded: whether the trials are without those of neurons, which are drawn by the plan.
    """
    summary = describe_plan(plan, dimensions)
    canvas = Canvas("plan", "What is left of each layer", ["; ".join(summary.split("; ")[:3])], summary, width)
    fates = None if trials is None else Fates(dimensions, trials, plan if is_crowded else None)
    columns = _Columns(width, 0 if fates is None else _SQUARE)
    first = canvas.top + 34
    rows = (
        line
        for index, layer in enumerate(plan.layers)
        for line in _row(index, layer, fates, dimensions, columns, first + _ROW * (dimensions.layers - 1 - index))
    )
    signs, below = legend(_signs(_PLAN if fates is None else FATES), first + _ROW * dimensions.layers + 24, width)
    explained, height = notes(_NOTES if fates is None else (_SQUARES, *_NOTES), below + 4, width)
    return canvas.drawn([*_headings(dimensions, columns, first - 10), *rows, *signs, *explained], height)


def describe_plan(plan: Plan, dimensions: Dimensions) -> str:
    """The picture in words."""
    heads = sum(len(layer.heads) for layer in plan.layers)
    neurons = sum(layer.neuron_count for layer in plan.layers)
    left = [(index, layer) for index, layer in enumerate(plan.layers) if not layer.dropped]
    gone = [attention(index).id for index, layer in left if not layer.attention]
    gone += [ffn(index).id for index, layer in left if not layer.ffn]
    dropped = f", dropped: {', '.join(map(str, plan.dropped))}" if plan.dropped else ""
    hard = [str(index) for index, layer in enumerate(plan.layers) if layer.hard_attention is not None]
    parts = [
        f"{dimensions.layers} layers{dropped}",
        f"{heads} of {dimensions.layers * dimensions.heads} heads kept",
        f"{neurons} of {dimensions.layers * dimensions.intermediate_size} neurons kept",
        f"removed blocks: {', '.join(gone) or 'none'}",
        f"hard attention in layers: {', '.join(hard) or 'none'}",
    ]
    return "; ".join(parts)


def _headings(dimensions: Dimensions, columns: _Columns, y: float) -> Iterator[str]:
    heads, neurons = f"{dimensions.heads} heads", f"{dimensions.intermediate_size:,} neurons"
    yield words(columns.attention, y, heads if columns.is_narrow else f"attention, {heads}", "ink")
    yield words(columns.ffn, y, neurons if columns.is_narrow else f"FFN, {neurons}", "ink")
    if not columns.is_narrow:
        yield words(EDGE, y, "layer", "ink")


def _row(
    index: int, layer: LayerPlan, fates: Fates | None, dimensions: Dimensions, columns: _Columns, y: float
) -> Iterator[str]:
    yield words(columns.left - 10, y + 13, str(index), "ink", "end")
    heads, neurons = planned(index, layer, dimensions) if fates is None else (fates.heads(index), fates.neurons(index))
    squares = [] if fates is None else fates.squares(index)
    yield from line_of(
        [
            *(_square(part, columns.left + place * _SQUARE, y) for place, part in enumerate(squares[:2])),
            *_strip(heads, dimensions.heads, columns.attention, columns.strip, y),
            *(_square(part, columns.ffn - _SQUARE, y) for part in squares[2:]),
            *_strip(neurons, dimensions.intermediate_size, columns.ffn, columns.strip, y),
        ]
    )
    shade = "ink" if layer.attention else "faint"
    yield words(columns.attention + columns.strip + 8, y + 13, _heads_left(layer, dimensions, columns), shade)
    left = _percent(layer.neuron_count, dimensions.intermediate_size) if layer.ffn else _removed(layer, columns)
    yield words(columns.ffn + columns.strip + 8, y + 13, left, "ink" if layer.ffn else "faint")


def _heads_left(layer: LayerPlan, dimensions: Dimensions, columns: _Columns) -> str:
    if not layer.attention:
        return _removed(layer, columns)
    hard = "" if layer.hard_attention is None or columns.is_narrow else f", K {layer.hard_attention}"
    return f"{len(layer.heads)}/{dimensions.heads}{hard}"


def _removed(layer: LayerPlan, columns: _Columns) -> str:
    if columns.is_narrow:
        return "–"
    return "dropped" if layer.dropped else "removed"


def _percent(kept: int, total: int) -> str:
    """A share in per cent, where 0 and 100 mean exactly none and all."""
    return f"{min(max(round(100 * kept / total), int(kept > 0)), 100 - int(kept < total))} %"


def _square(part: DrawnPart, x: float, y: float) -> str:
    return _rect(part, part.shade, x + 0.5, y + 0.5, _BLOCK - 1, 2)


def _strip(parts: Sequence[DrawnPart], total: int, x: float, width: float, y: float) -> Iterator[str]:
    """The parts of a block side by side, with thin gaps if they are wide enough."""
    for part in parts:
        left, right = x + width * part.start / total, x + width * part.stop / total
        gap = 1.5 if right - left > 5 else 0
        shade = "gap" if part.shade == "gone" and not gap else part.shade
        yield _rect(part, shade, left + gap / 2, y + 0.5, max(right - left - gap, 0.5), min(2, gap))


def _rect(part: DrawnPart, shade: str, x: float, y: float, width: float, corner: float) -> str:
    box = f'x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{_BLOCK - 1}" rx="{corner:g}"'
    title = f"{label_of(part.element, '')}: {part.meaning}"
    return f'<rect class="{shade}" data-element="{part.element}" {box}><title>{title}</title></rect>'


def _signs(shades: Iterable[str]) -> Iterator[tuple[str, str]]:
    for shade in shades:
        yield f'<rect class="{shade}" x="-10.5" y="-6.5" width="21" height="13" rx="2"/>', FATES[shade]

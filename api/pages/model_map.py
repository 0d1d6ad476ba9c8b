"""The map of a model: a row a layer, and in it every element with the verdict of its trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axformer.plan.elements import Dimensions, attention, ffn, hard_attention, head, layer, neurons, parse
from axformer.plan.trial import Verdict
from store.repositories.trace_views import Point

UNTRIED, KEPT, OPENED, GONE, HARD = "untried", "kept", "opened", "gone", "hard"
"""What became of an element: not tried yet, kept, kept with its parts tried, removed, rewritten to hard attention."""
_BY_VERDICT = {Verdict.REJECT: KEPT, Verdict.REFINE: OPENED, Verdict.ACCEPT: GONE}
_WORDS = {
    UNTRIED: "not tried yet",
    KEPT: "kept",
    OPENED: "kept, its parts tried",
    GONE: "removed",
    HARD: "hard attention",
}


@dataclass(frozen=True)
class Cell:
    """One element in a row."""

    element: str
    fate: str
    start: float
    """From where to where in its strip, as shares of its width."""
    width: float
    words: str
    """The same for people who cannot see or point."""


@dataclass(frozen=True)
class LayerRow:
    """One layer."""

    index: int
    hard: Cell
    attention: Cell
    heads: Sequence[Cell]
    heads_left: int
    ffn: Cell
    neurons: Sequence[Cell]
    neurons_left: float
    """Share of the layer's neurons."""


@dataclass(frozen=True)
class ModelMap:
    """All layers, the last one first, as the pass begins at the top."""

    rows: Sequence[LayerRow]
    heads: int
    is_whole: bool
    """Whether every group of neurons that was tried has a cell; else only those that were removed."""


def map_of(dimensions: Mapping[str, Any], points: Sequence[Point], *, is_whole: bool) -> ModelMap:
    """The map after these trials."""
    size = Dimensions(**dimensions)
    trials = {point.element: point for point in points if point.element is not None}
    groups: dict[int, list[Point]] = {}
    for name, point in trials.items():
        if ".neurons." in name:
            groups.setdefault(parse(name).layer, []).append(point)
    rows = [_row(index, size, trials, groups.get(index, [])) for index in reversed(range(size.layers))]
    return ModelMap(rows, size.heads, is_whole)


def _row(index: int, size: Dimensions, trials: Mapping[str, Point], groups: Sequence[Point]) -> LayerRow:
    whole = trials.get(layer(index).id)
    of_layer = whole if whole is not None and whole.verdict == Verdict.ACCEPT else None
    blocks = {name: of_layer or trials.get(name) for name in (attention(index).id, ffn(index).id)}
    rewrite = trials.get(hard_attention(index).id)
    hard = _cell(hard_attention(index).id, rewrite)
    if hard.fate == GONE:
        hard = Cell(hard.element, HARD, 0, 1, hard.words.replace(_WORDS[GONE], _WORDS[HARD]))
    heads = _heads(index, size, trials, blocks[attention(index).id])
    cells, left = _neurons(index, size, groups, blocks[ffn(index).id])
    return LayerRow(
        index=index,
        hard=hard,
        attention=_cell(attention(index).id, blocks[attention(index).id]),
        heads=heads,
        heads_left=sum(cell.fate != GONE for cell in heads),
        ffn=_cell(ffn(index).id, blocks[ffn(index).id]),
        neurons=cells,
        neurons_left=left,
    )


def _heads(index: int, size: Dimensions, trials: Mapping[str, Point], block: Point | None) -> list[Cell]:
    is_gone = block is not None and block.verdict == Verdict.ACCEPT
    cells = []
    for place in range(size.heads):
        name = head(index, place).id
        point = block if is_gone else trials.get(name)
        cells.append(_cell(name, point, place / size.heads, 1 / size.heads, kept=block))
    return cells


def _neurons(index: int, size: Dimensions, groups: Sequence[Point], block: Point | None) -> tuple[list[Cell], float]:
    everything = neurons(index, 0, size.intermediate_size).id
    if block is not None and block.verdict == Verdict.ACCEPT:
        return [_cell(everything, block)], 0.0
    # What lies under the groups: neurons that were not tried apart.
    cells, gone = [_cell(everything, None, kept=block)], 0
    for point in groups:
        found = parse(str(point.element))
        start, stop = found.start or 0, found.stop or 0
        cell = _cell(found.id, point, start / size.intermediate_size, (stop - start) / size.intermediate_size)
        gone += (stop - start) * (cell.fate == GONE)
        cells.append(cell)
    return cells, 1 - gone / size.intermediate_size


def _cell(name: str, point: Point | None, start: float = 0.0, width: float = 1.0, *, kept: Point | None = None) -> Cell:
    """An element's cell; one without a trial of its own is kept where its block was, and stands no trial otherwise."""
    if point is not None:
        fate = _BY_VERDICT[Verdict(point.verdict)]
        return Cell(name, fate, start, width, f"{name}: {_WORDS[fate]}, {_measured(point)}")
    fate = KEPT if kept is not None and kept.verdict == Verdict.REJECT else UNTRIED
    return Cell(name, fate, start, width, f"{name}: {'kept with its block' if fate == KEPT else _WORDS[UNTRIED]}")


def _measured(point: Point) -> str:
    bound = "at least " if point.loss_is_bound else ""
    helped = "" if point.helped is None else f", helped {point.helped} of {point.samples}"
    return f"loss {bound}{point.loss:.4f}{helped}"

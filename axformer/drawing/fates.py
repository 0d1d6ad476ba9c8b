"""The fate of every element of a layer, from a plan or from the trials of a pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from axformer.drawing.marks import DrawnTrial, measured
from axformer.plan.elements import (
    Dimensions,
    Element,
    ElementKind,
    attention,
    ffn,
    hard_attention,
    head,
    is_of_encoder,
    layer,
    layer_drop,
    neurons,
    parse,
)
from axformer.plan.plan import LayerPlan, Plan
from axformer.plan.trial import Verdict

FATES = {
    "kept": "kept",
    "opened": "kept, its parts tried",
    "gone": "removed",
    "hard": "hard attention",
    "untried": "not tried yet",
}
"""Shades of elements and their meanings."""
_CELLS = 128
"""Of a layer whose neurons are too many to draw each group."""
_BY_VERDICT: Mapping[str, str] = {Verdict.REJECT: "kept", Verdict.REFINE: "opened", Verdict.ACCEPT: "gone"}


@dataclass(frozen=True)
class DrawnPart:
    """An element, or a run of heads or neurons, with its range in the block."""

    element: str
    start: int
    stop: int
    shade: str
    """One of ``FATES``."""
    meaning: str


def planned(index: int, left: LayerPlan, dimensions: Dimensions) -> tuple[list[DrawnPart], list[DrawnPart]]:
    """The heads and runs of neurons in a layer's plan; a removed block is one part, and so is that of a dropped layer."""
    if left.dropped:
        sizes = dimensions.heads, dimensions.intermediate_size
        return [_planned(layer_drop(index), 0, sizes[0], is_kept=False)], [
            _planned(layer_drop(index), 0, sizes[1], is_kept=False)
        ]
    heads = [
        _planned(head(index, number), number, number + 1, number in left.heads) for number in range(dimensions.heads)
    ]
    if left.hard_attention is not None:
        heads = [
            DrawnPart(part.element, part.start, part.stop, "hard", part.meaning) if part.shade == "kept" else part
            for part in heads
        ]
    edges = [0, *(edge for bounds in left.neurons for edge in bounds), dimensions.intermediate_size]
    runs = [(start, stop, bool(run % 2)) for run, (start, stop) in enumerate(pairwise(edges)) if start < stop]
    return (
        heads if left.attention else [_planned(attention(index), 0, dimensions.heads, is_kept=False)],
        [_planned(neurons(index, start, stop), start, stop, is_kept) for start, stop, is_kept in runs]
        if left.ffn
        else [_planned(ffn(index), 0, dimensions.intermediate_size, is_kept=False)],
    )


def _planned(element: Element, start: int, stop: int, is_kept: bool) -> DrawnPart:
    shade = "kept" if is_kept else "gone"
    return DrawnPart(element.id, start, stop, shade, FATES[shade])


def crowd(index: int, left: LayerPlan, size: int) -> list[DrawnPart]:
    """The neurons of a layer in equal cells, each with the share that is removed; alike ones side by side are one part."""
    kept = np.zeros(size + 1)
    for start, stop in left.neurons:
        kept[start:stop] = 1
    before = np.concatenate(([0], np.cumsum(kept)))
    edges = np.linspace(0, size, min(size, _CELLS) + 1).astype(int)
    gone = 2 * (before[edges[1:]] - before[edges[:-1]]) < np.diff(edges)
    bounds = edges[[0, *(np.flatnonzero(np.diff(gone)) + 1), len(gone)]]
    return [
        DrawnPart(
            neurons(index, start, stop).id,
            start,
            stop,
            "gone" if gone[np.searchsorted(edges, start)] else "kept",
            f"{stop - start - int(before[stop] - before[start]):,} of {stop - start:,} removed",
        )
        for start, stop in pairwise(bounds.tolist())
    ]


class Fates:
    """The fate of every element by the trials of a pass; the last trial of an element counts."""

    def __init__(self, dimensions: Dimensions, trials: Sequence[DrawnTrial], plan: Plan | None = None) -> None:
        """
        Args:
            plan: what is left, where too many groups of neurons were tried to draw each.
        """
        self._dimensions, self._plan = dimensions, plan
        tried = [trial for trial in trials if trial.element is not None and not is_of_encoder(trial.element)]
        self._trials = {str(trial.element): trial for trial in tried}
        self._groups: dict[int, list[Element]] = {}
        for element in map(parse, self._trials):
            if element.kind is ElementKind.NEURONS:
                self._groups.setdefault(element.layer, []).append(element)

    def squares(self, index: int) -> list[DrawnPart]:
        """Hard attention, attention and FFN of a layer."""
        rewrite = self._part(hard_attention(index), 0, 1)
        if rewrite.shade == "gone":
            meaning = rewrite.meaning.replace(FATES["gone"], FATES["hard"], 1)
            rewrite = DrawnPart(rewrite.element, 0, 1, "hard", meaning)
        return [rewrite, *(self._part(block, 0, 1, of=self._block(block)) for block in (attention(index), ffn(index)))]

    def heads(self, index: int) -> list[DrawnPart]:
        """Every head of a layer; a removed block is one part."""
        block, count = self._block(attention(index)), self._dimensions.heads
        if block is not None and block.verdict == Verdict.ACCEPT:
            return [self._part(attention(index), 0, count, of=block)]
        return [self._part(head(index, number), number, number + 1, block=block) for number in range(count)]

    def neurons(self, index: int) -> list[DrawnPart]:
        """All neurons of a layer as one part, and on top the groups that were tried."""
        block, size = self._block(ffn(index)), self._dimensions.intermediate_size
        if block is not None and block.verdict == Verdict.ACCEPT:
            return [self._part(ffn(index), 0, size, of=block)]
        if self._plan is not None:
            return crowd(index, self._plan.layers[index], size)
        groups = self._groups.get(index, [])
        return [self._part(neurons(index, 0, size), 0, size, block=block), *map(self._part, groups, *_places(groups))]

    def _block(self, block: Element) -> DrawnTrial | None:
        """The trial that decided about a block, or about its layer if that was removed or dropped."""
        whole = (self._trials.get(of.id) for of in (layer_drop(block.layer), layer(block.layer)))
        gone = (trial for trial in whole if trial is not None and trial.verdict == Verdict.ACCEPT)
        return next(gone, self._trials.get(block.id))

    def _part(
        self, element: Element, start: int, stop: int, *, of: DrawnTrial | None = None, block: DrawnTrial | None = None
    ) -> DrawnPart:
        """The part of an element by its own trial or ``of`` another; without a trial it shares the fate of its ``block``."""
        name = element.id
        trial = of or self._trials.get(name)
        if trial is not None:
            shade = _BY_VERDICT[trial.verdict]
            return DrawnPart(name, start, stop, shade, f"{FATES[shade]}, {measured(trial)}")
        if block is not None and block.verdict == Verdict.REJECT:
            return DrawnPart(name, start, stop, "kept", "kept with its block")
        return DrawnPart(name, start, stop, "untried", FATES["untried"])


def _places(groups: Sequence[Element]) -> tuple[list[int], list[int]]:
    """Where groups of neurons of one block are drawn, from and to: where they lie, or in the order in which they were tried if
    the neurons of some do not lie side by side."""
    if not any(group.scattered for group in groups):
        return [group.start or 0 for group in groups], [group.stop or 0 for group in groups]
    edges = [0, *accumulate(sum(stop - start for start, stop in group.ranges) for group in groups)]
    return edges[:-1], edges[1:]

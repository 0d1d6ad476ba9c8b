"""The level table of a compression as pictures: what each block alone would cost at each of its sizes."""

from collections.abc import Sequence

from axformer.drawing.heatmap import Heatmap, heatmap
from axformer.plan.blocks import Block, BlockKind, all_blocks
from axformer.plan.elements import Dimensions
from axformer.plan.levels import are_levels_of, sizes_of
from axformer.plan.plan import Plan
from axformer.plan.trial import BlockLevels, Trial

_WEAKEST = 1e-4
"""Divergences below this share of the largest look alike: they cost nothing beside it."""
_MILLI = 1000.0
_NAMES = {BlockKind.ATTENTION: ("attention", "heads"), BlockKind.FFN: ("FFN", "neurons")}
"""What blocks and their units are called."""


def level_pictures(trace: Sequence[Trial], plan: Plan, dimensions: Dimensions) -> list[str]:
    """The SVG texts of the attention blocks' and the FFN blocks' levels; none if the trace holds no level table.

    Args:
        trace: every trial of the run.
        plan: what was kept; the size of each block is framed.
        dimensions: of the model before the run.
    """
    levels = next((trial.levels for trial in trace if trial.levels is not None), None)
    if levels is None or not are_levels_of(levels, dimensions):
        return []
    blocks = list(zip(all_blocks(dimensions.layers), levels, strict=True))
    return [
        _picture([measured for block, measured in blocks if block.kind is kind], plan, dimensions, kind)
        for kind in BlockKind
    ]


def _picture(levels: Sequence[BlockLevels], plan: Plan, dimensions: Dimensions, kind: BlockKind) -> str:
    (name, units), sizes = _NAMES[kind], sizes_of(Block(0, kind), dimensions)
    values = [[_MILLI * divergence for divergence in block.divergences] for block in levels]
    most = max(map(max, values))
    top_down = list(range(len(levels)))[::-1]
    kept = [len(Block(layer, kind).units(plan)) for layer in range(len(plan.layers))]
    matrix = Heatmap(
        f"levels-{units}",
        f"What each {name} block would cost at each size",
        [
            "divergence of the predictions in thousandths of a nat, this block alone cut; colours are logarithmic",
            "framed: what was kept",
        ],
        [str(layer) for layer in top_down],
        [str(size) for size in sizes],
        [values[layer] for layer in top_down],
        "layer",
        f"{units} left",
        least=most * _WEAKEST,
        most=most,
        is_logarithmic=most > 0,
        marked=[(row, sizes.index(kept[layer])) for row, layer in enumerate(top_down) if kept[layer] in sizes],
    )
    return heatmap(matrix)

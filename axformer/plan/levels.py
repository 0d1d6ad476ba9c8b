"""The level table of a compression as it is stored: the sizes that a block may have, and what is known of each."""

import math
from collections.abc import Sequence

from axformer.plan.blocks import Block, all_blocks
from axformer.plan.elements import Dimensions
from axformer.plan.trial import BlockLevels

NEURON_LEVELS = 20
"""Number of sizes below all neurons that a feed-forward block may have, none included."""
MULTIPLE = 16
"""Neurons are kept in multiples of this number if the steps between the levels are at least as large. A float32 vector register
of AVX-512 holds 16 numbers, and GPUs multiply matrices in tiles of 8 to 64."""
MEASURED = (0.6, 0.2, 0.0)
"""Shares of a block's units at which the divergence is measured; elsewhere the order of leaving predicts it."""


def sizes_of(block: Block, dimensions: Dimensions) -> list[int]:
    """The sizes that a block may have, largest first: every number of heads, or about every twentieth of the neurons."""
    if not block.is_ffn:
        return list(range(dimensions.heads, -1, -1))
    neurons = dimensions.intermediate_size
    step = MULTIPLE if neurons >= NEURON_LEVELS * MULTIPLE else 1
    levels = (step * round(neurons * level / (NEURON_LEVELS * step)) for level in range(NEURON_LEVELS))
    return sorted({neurons, *levels}, reverse=True)


def measured_sizes(sizes: Sequence[int]) -> list[int]:
    """The sizes at which the divergence is measured, largest first."""
    return sorted({min(sizes[1:], key=lambda size: abs(size - share * sizes[0])) for share in MEASURED}, reverse=True)


def are_levels_of(measured: Sequence[BlockLevels], dimensions: Dimensions) -> bool:
    """Whether these are the measured levels of such a model: each block's units once, and a figure for each of its sizes."""
    blocks = all_blocks(dimensions.layers)
    if len(measured) != len(blocks):
        return False
    for block, levels in zip(blocks, measured, strict=True):
        sizes = sizes_of(block, dimensions)
        if sorted(levels.leaving) != list(range(sizes[0])) or len(levels.divergences) != len(sizes):
            return False
        if not all(math.isfinite(one) and one >= 0 for one in levels.divergences):
            return False
    return True

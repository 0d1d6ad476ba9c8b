"""The level table: the cost of each block at each size, in operations or milliseconds and in divergence of the predictions.

The units of a block leave in a fixed order. At some sizes, this block alone is cut, refitted and put into the untouched model,
and the divergence of the predictions from the untouched model's is measured on some of the deciding rows (``table_rows``). No
label is used. A run stores what was measured in its first budget's trial, where it takes about twice the space of a plan.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from axformer.data.batches import Samples, batches_of
from axformer.errors import PlanError
from axformer.evaluation.budget import cache_budget
from axformer.evaluation.cut_layers import CutLayers
from axformer.evaluation.multiply import multiply_fast
from axformer.evaluation.prefix import PrefixEvaluator, Techniques
from axformer.intake.checkpoint import Checkpoint
from axformer.methods.base import Ground
from axformer.plan.blocks import Block, all_blocks
from axformer.plan.elements import Dimensions
from axformer.plan.levels import are_levels_of, measured_sizes, sizes_of
from axformer.plan.plan import LayerPlan, Plan
from axformer.plan.trial import BlockLevels
from axformer.repair.blockwise import Blockwise
from axformer.repair.leaving import Leaving, leaving_order
from axformer.repair.local import WholeBlock
from axformer.repair.refit import BlockFit, can_refit, put
from axformer.repair.sensitivity import evened, sensitivities
from axformer.tasks.divergence import Divergence
from axformer.wire.steps import Counter, StepName


@dataclass(frozen=True)
class Level:
    """One block at one size."""

    units: tuple[int, ...]
    """The heads or neurons that are kept."""
    cost: float
    """Cost of the block: operations for one pass over the data, or milliseconds."""
    divergence: float
    """Mean divergence over the rows, in nats, with this block alone cut."""


Table = Mapping[Block, Sequence[Level]]
"""The levels of each block, bottom first."""
_EVENLY = 1e-6
"""Share of the largest error that grows with the square of the missing units, so that units without any error differ too."""
_LEAST = 1e-24
"""The least divergence in nats, so that none has a logarithm."""


def curve(measured: Mapping[int, float], sizes: Sequence[int], errors: Sequence[float]) -> list[float]:
    """The divergence at every size, from few measured ones.

    The errors are what the order of leaving predicts by the Fisher information of the predictions, which holds while they are
    small. How far off they are is measured: the logarithm of the root of measured over predicted is interpolated over the root
    of the prediction, and constant beyond both ends. Where a divergence falls as more units are missing, the largest so far is
    kept.

    Args:
        measured: divergences by size, in nats.
        sizes: of the block, all units first.
        errors: the predicted error at each size.
    """
    missing = 1 - np.array(sizes) / sizes[0]
    roots = np.sqrt(np.maximum.accumulate(errors) / (max(errors) or 1.0) + _EVENLY * missing**2)
    places = sorted(sizes.index(size) for size in measured)
    known = np.maximum.accumulate([max(measured[sizes[place]], _LEAST) ** 0.5 for place in places])
    ratios = np.interp(roots, roots[places], np.log(known / roots[places]))
    backwards = np.minimum.accumulate(
        (roots * np.exp(ratios))[::-1]
    )  # between two sizes no more than at the smaller one
    return [float(root) for root in np.square(backwards[::-1])]


def level_table(
    measured: Sequence[BlockLevels], dimensions: Dimensions, cost_of: Callable[[Block, Sequence[int]], float]
) -> Table:
    """The level table of measured blocks.

    Args:
        measured: the result of :func:`measure_levels`.
        dimensions: of the model.
        cost_of: computes the cost of a block from its kept units.

    Raises:
        PlanError: these are not the blocks of such a model.
    """
    if not are_levels_of(measured, dimensions):
        raise PlanError("the stored trace is not one of this run: its level table is not one of this model's blocks")
    table = {}
    for block, one in zip(all_blocks(dimensions.layers), measured, strict=True):
        order = Leaving(list(one.leaving), [])
        kept = [order.kept(size) for size in sizes_of(block, dimensions)]
        levels = zip(kept, one.divergences, strict=True)
        table[block] = [Level(tuple(units), cost_of(block, units), divergence) for units, divergence in levels]
    return table


def measure_levels(ground: Ground) -> tuple[BlockLevels, ...]:
    """Measure the order of leaving of all blocks, and the divergence at all their sizes; the model is not changed."""
    checkpoint, config, check_cancelled = ground.checkpoint, ground.config, ground.surroundings.check_cancelled
    model, architecture = checkpoint.model, checkpoint.architecture
    full = Plan.full(checkpoint.dimensions)
    rows = ground.samples if len(ground.samples) >= config.table_rows else ground.calibration
    measure = _Measure(checkpoint, rows, config.table_rows, config.cache_budget)
    teacher = Blockwise(model, architecture, ground.calibration, full)
    fits = config.repair == "refit" and can_refit(model, architecture)
    blocks = {block: sizes_of(block, checkpoint.dimensions) for block in all_blocks(len(full.layers))}
    parts = sum(1 + len(measured_sizes(sizes)) for sizes in blocks.values())
    Counter(StepName.LEVEL_TABLE, parts, ground.surroundings.on_step).begin(
        "what errors of each block do to the predictions"
    )
    information = sensitivities(checkpoint, ground.calibration, check_cancelled)
    counter = Counter(StepName.LEVEL_TABLE, parts, ground.surroundings.on_step)  # whose clock starts with the blocks
    levels = []
    for block, sizes in blocks.items():
        check_cancelled()
        place = f"block {block.number + 1} of {len(blocks)}"
        counter.begin(f"{place}, its inputs")
        whole = WholeBlock.before(teacher)
        order = leaving_order(whole.weight, whole.covariance, sizes[0], metric=evened(information[block.number]))
        counter.advance(detail=place)
        measured = {}
        for size in measured_sizes(sizes):
            check_cancelled()
            units = order.kept(size)
            fit = whole.fit(units, sizes[0]) if fits else None
            measured[size] = measure(block.with_units(full, units), block, fit)
            counter.advance(detail=place)
        divergences = curve(measured, sizes, [order.error(size) for size in sizes])
        levels.append(BlockLevels(leaving=tuple(order.units), divergences=tuple(divergences)))
        teacher.advance()
    return tuple(levels)


def rows_of_all_lengths(samples: Samples, count: int) -> list[int]:
    """About ``count`` model rows, taken from the batches at regular intervals."""
    every = max(1, len(samples.sample_of_row) // count)
    return [row for batch in samples.batches for row in batch.rows[::every].tolist()]


class _Measure:
    """Measures the divergence of a model in which a single block is cut and refitted."""

    def __init__(self, checkpoint: Checkpoint, samples: Samples, rows_wanted: int, budget: int | None) -> None:
        self._checkpoint = checkpoint
        batches = batches_of(samples, rows_of_all_lengths(samples, rows_wanted), checkpoint.tokenizer)
        self._full = Plan.full(checkpoint.dimensions)
        rows = torch.cat([batch.rows.cpu() for batch in batches])
        index_of = {int(row): index for index, row in enumerate(rows)}
        renumbered = tuple(
            replace(batch, rows=torch.tensor([index_of[int(row)] for row in batch.rows], device=batch.rows.device))
            for batch in batches
        )
        model = checkpoint.model
        chosen = replace(samples, batches=renumbered, sample_of_row=torch.arange(len(rows)))
        task = Divergence(checkpoint.task, model, renumbered)
        self._evaluator = PrefixEvaluator(
            model,
            checkpoint.architecture,
            task,
            chosen,
            self._full,
            budget=cache_budget(budget, str(model.device)),
            techniques=Techniques(shares=False, untouched=False),
        )
        self._layers = CutLayers(model, checkpoint.architecture, self._convert)
        self._fit: tuple[Block, BlockFit] | None = None

    def __call__(self, plan: Plan, block: Block, fit: BlockFit | None) -> float:
        """Mean divergence over the rows."""
        self._fit = None if fit is None else (block, fit)
        parts = list(self._evaluator.rows_in(plan, self._layers, block.number))
        self._layers.forget(block.layer)
        return float(torch.cat([part.losses for part in parts]).double().mean())

    def _convert(self, index: int, layer: nn.Module, plan: LayerPlan) -> None:
        architecture = self._checkpoint.architecture
        if self._fit is not None and index == self._fit[0].layer:
            put(architecture, layer, *self._fit)
        multiply_fast(layer, plan, architecture=architecture)

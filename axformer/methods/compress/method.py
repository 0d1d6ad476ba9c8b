"""Compression without training as a method: one model for each budget, each an accepted trial with its own plan.

Moments and the level table are measured once, on the untouched model (:mod:`axformer.methods.compress.table`). Each budget is
then a choice of levels (:func:`allocate`) followed by a sequential refit
(:mod:`axformer.repair.refit`). The result depends on the checkpoint, the data and the knobs alone. The first budget's trial
stores the table, so that a resumed run continues at once; one that stopped before measures the same table again.
"""

from collections.abc import Callable, Generator, Sequence
from math import floor
from typing import Any

import numpy as np

from axformer.config.compress import CompressConfig
from axformer.errors import ConfigError
from axformer.intake.dataset import DataSet
from axformer.methods.base import Ground, Method, Replay
from axformer.methods.compress.latency import measure_blocks
from axformer.methods.compress.table import Level, Table, level_table, measure_levels
from axformer.methods.whole_plans import WholePlans
from axformer.plan.blocks import Block, all_blocks, blocks_of_layer
from axformer.plan.elements import encoder_share
from axformer.plan.levels import sizes_of
from axformer.plan.plan import Plan
from axformer.plan.trial import BlockLevels, Milliseconds, Phase, Trial, Verdict
from axformer.repair.recovery import Origin, Recovery
from axformer.repair.training import Training

GRID = 2000
"""Number of steps in a budget of an allocation. Costs are rounded up, so a choice never exceeds the budget."""
SHARE_STEP = 1e-6
"""A budget that is worked out is a multiple of this, rounded down: as exact as the ids of trials are."""


class Compress(Method):
    """See :class:`axformer.methods.base.Method`."""

    def recovery(self, ground: Ground, training: Training, deciding: DataSet) -> Recovery | None:
        checkpoint, refits = ground.checkpoint, ground.refits

        def begun(plan: Plan) -> Origin:
            return Origin(checkpoint.model, fits=None if refits is None else refits.of(plan))

        return Recovery(checkpoint, training, deciding, begun) if ground.config.polish else None

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Yield the untouched model, then a trial for every budget that gives a smaller model than the previous one.

        A speed that is asked for is met if the model can go there: where operations lie outside of the encoder, as those of a
        vocabulary do, a last budget makes up for them. Where the model that reaches it is of use, others are not made.
        """
        run = _Run(ground, Replay(replay))
        yield run.base()
        plan: Plan | None = None
        for budget in run.budgets():
            trial = run.budget(budget, plan)
            if trial is None:
                continue
            yield trial
            assert trial.plan is not None, "a budget's trial holds its plan"
            plan = Plan(layers=trial.plan)
            if trial.verdict is not Verdict.REJECT and run.is_reached(plan):
                return
        run.plans.end()


class _Run:
    """The state of one run: the level table once it is measured."""

    def __init__(self, ground: Ground, replay: Replay) -> None:
        self._ground = ground
        self.plans = WholePlans(ground, replay, Phase.BUDGET)
        self._full = Plan.full(ground.dimensions)
        self._levels: tuple[BlockLevels, ...] | None = None
        self._unstored: tuple[BlockLevels, ...] | None = None
        """The levels from their measurement until a trial stores them."""
        self._table: Table | None = None
        self._milliseconds: Milliseconds | None = None

    def base(self) -> Trial:
        """The trial of the untouched model."""
        trial = self.plans.base(self._opening)
        self._milliseconds = trial.milliseconds
        return trial

    def _opening(self) -> dict[str, Any]:
        if self._ground.config.cost == "latency":
            self._milliseconds = measure_blocks(self._ground.checkpoint, self._ground.samples)
        self._check_budgets()
        return {"milliseconds": self._milliseconds}

    def budgets(self) -> tuple[float, ...]:
        """Those of the knobs, and the one that reaches the speed asked for if the model can go there, where they are needed."""
        config: CompressConfig = self._ground.config
        given = config.budgets
        if config.target_speedup is None:
            return self._needed(given)
        given = tuple(budget for budget in given if budget > self._least_share())
        share = self._share_for(config.target_speedup)
        reaching = floor(share / SHARE_STEP) * SHARE_STEP
        return self._needed((*given, reaching) if self._least_share() < reaching < given[-1] else given)

    def _needed(self, budgets: tuple[float, ...]) -> tuple[float, ...]:
        """The first budget that reaches the target, or else the last one, where its model is of use; otherwise all. A resumed
        run goes on as it began."""
        is_of_use, last = self._ground.is_of_use, (1.0, self._full)
        if is_of_use is None or self.plans.is_resumed or not self._ground.targets.is_wished:
            return budgets
        for budget in budgets:
            plan = self._plan_within(budget)
            last = last if plan is None or plan == last[1] else (budget, plan)
            if self.is_reached(last[1]):
                break
        budget, plan = last
        if plan == self._full or not self.plans.measured(plan).losses.isfinite().all():
            return budgets
        return (budget,) if is_of_use(plan, self.plans.measured(plan)) else budgets

    def _share_for(self, times: float) -> float:
        """The share of the encoder's cost that may be left where the model is to cost so many times less."""
        if self._milliseconds is None:
            return self._ground.targets.share_for(times)
        blocks = self._taken(self._full)
        whole = self._milliseconds.whole or blocks
        return (whole / times - (whole - blocks)) / blocks

    def is_reached(self, plan: Plan) -> bool:
        """Whether a plan is as small and as fast as the knobs ask for, by operations or by milliseconds."""
        targets, config = self._ground.targets, self._ground.config
        if self._milliseconds is None or config.target_speedup is None:
            return targets.is_reached(plan)
        blocks = self._taken(self._full)
        whole = self._milliseconds.whole or blocks
        is_small = config.target_size is None or targets.size(plan) <= config.target_size
        return bool(is_small and whole >= config.target_speedup * (whole - blocks + self._taken(plan)))

    def _taken(self, plan: Plan) -> float:
        """The cost of the blocks of a plan."""
        cost_of = self._cost_of()
        return sum(cost_of(block, block.units(plan)) for block in all_blocks(len(plan.layers)))

    def _check_budgets(self) -> None:
        """Refuse a budget that no plan keeps, before the level table is measured."""
        config, left = self._ground.config, self._least_share()
        least = config.budgets[0 if config.target_speedup is not None else -1]  # a target goes as far as it can
        if least <= left:
            raise ConfigError(
                f"knob budgets: {least:g} is less than this model can go to; without any head or neuron its layers still take "
                f"{left:.3f} of the {self._ground.config.cost}; leave out what is not above that"
            )

    def _least_share(self) -> float:
        """Share of the cost that is left without any head or neuron."""
        cost_of, dimensions = self._cost_of(), self._ground.dimensions
        blocks = all_blocks(dimensions.layers)
        whole = sum(cost_of(block, range(sizes_of(block, dimensions)[0])) for block in blocks)
        total = whole if self._milliseconds is not None else self._ground.targets.encoder_operations(self._full)
        return (total - whole + sum(cost_of(block, ()) for block in blocks)) / total

    def budget(self, share: float, before: Plan | None) -> Trial | None:
        """The trial of the best plan within a share of the encoder's cost; None if the plan is the same as before."""
        element = encoder_share(share)
        if self.plans.is_left_out(element):
            return None  # the plan was the same as before; a trace of another run is detected at the end
        stored = self.plans.stored(element)
        if stored is not None:
            self._levels = self._levels or stored.levels
            return stored
        plan = self._plan_within(share)
        if plan is None or plan == before or (before is None and plan == self._full):
            return None
        trial = self.plans.tried(element, plan, more={"levels": self._unstored})
        self._unstored = None
        return trial

    def _plan_within(self, share: float) -> Plan | None:
        ground = self._ground
        if self._table is None:
            if self._levels is None:
                self._levels = self._unstored = measure_levels(ground)
            self._table = level_table(self._levels, ground.dimensions, self._cost_of())
        whole = sum(levels[0].cost for levels in self._table.values())
        total = whole if self._milliseconds is not None else ground.targets.encoder_operations(self._full)
        chosen = allocate(
            list(self._table.values()), share * total - (total - whole)
        )  # what lies outside the blocks stays
        if chosen is None:
            return None
        plan = self._full
        for (block, levels), index in zip(self._table.items(), chosen, strict=True):
            plan = block.with_units(plan, levels[index].units)
        return plan

    def _cost_of(self) -> Callable[[Block, Sequence[int]], float]:
        """The function from a block and its kept units to its cost."""
        operations, full, milliseconds = self._ground.targets.encoder_operations, self._full, self._milliseconds
        if milliseconds is None:
            empty = {block: operations(block.with_units(full, ())) for block in all_blocks(len(full.layers))}
            return lambda block, kept: operations(block.with_units(full, kept)) - empty[block]
        taken = {
            block.kind: dict(zip(sizes_of(block, self._ground.dimensions), measured, strict=True))
            for block, measured in zip(blocks_of_layer(0), (milliseconds.attention, milliseconds.ffn), strict=True)
        }
        return lambda block, kept: taken[block.kind][len(kept)]


def allocate(blocks: Sequence[Sequence[Level]], budget: float, grid: int = GRID) -> list[int] | None:
    """Index of each block's level, with the smallest sum of divergences within the budget; None if no choice fits.

    This is a multiple-choice knapsack problem, solved by dynamic programming; exact up to the grid of costs.

    Args:
        blocks: the levels of each block, in any order.
        budget: the largest sum of costs, in the unit of the costs.
        grid: number of steps that the budget is divided into.
    """
    if budget <= 0:
        return None
    step = budget / grid
    least = np.zeros(grid + 1)
    picked = []
    for levels in blocks:
        costs = [int(np.ceil(level.cost / step - 1e-9)) for level in levels]
        candidates = np.full((len(levels), grid + 1), np.inf)
        for index, (level, cost) in enumerate(zip(levels, costs, strict=True)):
            if cost <= grid:
                candidates[index, cost:] = least[: grid + 1 - cost] + level.divergence
        best = candidates.argmin(axis=0)
        least = candidates[best, np.arange(grid + 1)]
        picked.append((best, costs))
    if not np.isfinite(least[grid]):
        return None
    left, chosen = grid, []
    for best, costs in reversed(picked):
        index = int(best[left])
        chosen.append(index)
        left -= costs[index]
    return chosen[::-1]

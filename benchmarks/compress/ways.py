"""The ways to make smaller models of one checkpoint, one model for each budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from axformer.methods.base import Ground, method_of
from axformer.model.compact import compact
from axformer.plan.blocks import all_blocks, blocks_of_layer
from axformer.plan.elements import encoder_share
from axformer.plan.plan import Plan
from axformer.repair.refit import apply_refit, refit_plan, refitted
from benchmarks.compress.fisher import Costs, information, most_informative, rearranged
from benchmarks.compress.grid import Variant
from benchmarks.compress.ground import TimedRefits
from benchmarks.compress.scalars import Tuning


@dataclass(frozen=True)
class Made:
    """One model."""

    budget: float
    plan: Plan
    model: Any
    """The compact model, refitted or tuned depending on the way."""
    seconds: float
    """Time for this budget; for the first one without the shared level table or Fisher information."""
    tokens_per_unknown: float | None = None
    """Calibration tokens per unknown, in the block with the fewest; None if nothing was fitted."""


@dataclass(frozen=True)
class Way:
    """All models of a checkpoint."""

    made: Sequence[Made]
    shared_seconds: float | None
    """Time for the shared level table or Fisher information; None if it was not measured separately from the first budget."""
    seconds: float
    """Total time."""


def go(ground: Ground, variant: Variant) -> Way:
    """Make one model for each budget in the config."""
    return _compressed(ground) if variant.masks is None else _masked(ground, variant)


def _compressed(ground: Ground) -> Way:
    """Make the models by ``method=compress``, trial by trial as in a run."""
    started = ground.surroundings.clock()
    trials = list(method_of(ground.config).trials(ground, ()))
    began = ground.refits.began if isinstance(ground.refits, TimedRefits) else None
    shared = None if began is None else began - started - trials[0].seconds
    ends = [trial.seconds for trial in trials]
    budgets = {encoder_share(budget): budget for budget in ground.config.budgets}
    made = []
    for index, trial in enumerate(trials[1:], start=1):
        assert trial.plan is not None, "a budget's trial holds its plan"
        assert trial.element is not None, "a budget's trial has a name"
        plan = Plan(layers=trial.plan)
        taken = ends[index] - ends[index - 1] - ((shared or 0.0) if index == 1 else 0.0)
        about = refitted(ground.refits.of(plan)) if ground.refits is not None else None
        tokens = None if about is None else about.tokens_per_unknown
        made.append(Made(budgets[trial.element], plan, ground.model_of(plan), taken, tokens))
    return Way(made, shared, ends[-1])


def _masked(ground: Ground, variant: Variant) -> Way:
    """Make the models by masks of Fisher information, with the steps of the variant."""
    started = ground.surroundings.clock()
    found, costs = information(ground), _costs(ground)
    shared = ground.surroundings.clock() - started
    made = []
    for budget in ground.config.budgets:
        began = ground.surroundings.clock()
        units = most_informative(found, costs, budget * ground.targets.encoder_operations(ground.targets.full))
        if variant.masks != "fisher":
            units = [rearranged(one, kept) for one, kept in zip(found, units, strict=True)]
        plan = _plan_of(ground, units)
        model = _model_of(ground, plan, tunes=variant.masks == "tuned")
        made.append(Made(budget, plan, model, ground.surroundings.clock() - began))
    return Way(made, shared, ground.surroundings.clock() - started)


def _costs(ground: Ground) -> Costs:
    """The costs of a unit, from the operations that the first layer saves without it."""
    count, full = ground.targets.encoder_operations, ground.targets.full
    head, neuron = (
        count(full) - count(block.with_units(full, range(1, block.size(ground.dimensions))))
        for block in blocks_of_layer(0)
    )
    return Costs(head, neuron)


def _plan_of(ground: Ground, units: Sequence[Sequence[int]]) -> Plan:
    plan = ground.targets.full
    for block, kept in zip(all_blocks(len(plan.layers)), units, strict=True):
        plan = block.with_units(plan, kept)
    return plan


def _model_of(ground: Ground, plan: Plan, *, tunes: bool) -> Any:
    model, architecture = ground.checkpoint.model, ground.checkpoint.architecture
    small = compact(model, architecture, plan)
    if tunes:
        tuning = Tuning(ground.checkpoint)
        apply_refit(
            small, architecture, plan, refit_plan(model, architecture, ground.calibration, plan, solver_of=tuning)
        )
    return small

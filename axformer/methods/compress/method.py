"""Compression without training as a method: one model for each budget, each an accepted trial with its own plan.

Moments and the level table are measured once, on the untouched model (:mod:`axformer.methods.compress.table`). Each budget is
then a choice of levels (:mod:`axformer.methods.compress.allocation`) followed by a sequential refit
(:mod:`axformer.repair.refit`). The result depends on the checkpoint, the data and the knobs alone. The first budget's trial
stores the table, so that a resumed run continues at once; one that stopped before measures the same table again.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from torch import Tensor

from axformer.config.compress import CompressConfig
from axformer.errors import CheckpointError, ConfigError, PlanError
from axformer.evaluation.plain import predict
from axformer.methods.base import Extras, Ground
from axformer.methods.compress.allocation import Choice, allocate
from axformer.methods.compress.latency import measure_blocks
from axformer.methods.compress.sizes import sizes_of, with_units
from axformer.methods.compress.table import Table, level_table, measure_levels
from axformer.methods.replay import Replay
from axformer.plan.elements import Dimensions, encoder_share
from axformer.plan.plan import Plan
from axformer.plan.trial import BlockLevels, Milliseconds, Phase, Trial, Verdict
from axformer.repair.refit import Refits


class Compress:
    """See :class:`axformer.methods.base.Method`."""

    name = "compress"
    fits = Refits
    extras = Extras()

    def check(self, config: CompressConfig, dimensions: Dimensions) -> None:
        """Any model can be compressed."""

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Yield the untouched model, then a trial for every budget that gives a smaller model than the previous one."""
        run = _Run(ground, Replay(replay))
        yield run.base()
        plan: Plan | None = None
        for budget in ground.config.budgets:
            trial = run.budget(budget, plan)
            if trial is None:
                continue
            yield trial
            assert trial.plan is not None, "a budget's trial holds its plan"
            plan = Plan(layers=trial.plan)
            if ground.targets.is_reached(plan):
                return
        run.end()


class _Run:
    """The state of one run: the level table once it is measured, and the losses of the untouched model."""

    def __init__(self, ground: Ground, replay: Replay) -> None:
        self._ground = ground
        self._replay = replay
        self._started = ground.clock() - replay.seconds
        self._full = Plan.full(ground.dimensions)
        self._min_loss = float("inf")
        self._base: Tensor | None = None
        self._levels: tuple[BlockLevels, ...] | None = None
        self._unstored: tuple[BlockLevels, ...] | None = None
        """The levels from their measurement until a trial stores them."""
        self._table: Table | None = None
        self._milliseconds: Milliseconds | None = None

    def base(self) -> Trial:
        """The trial of the untouched model."""
        trial = self._replay.next(None)
        if trial is None:
            losses = self._base_losses()
            if self._ground.config.cost == "latency":
                self._milliseconds = measure_blocks(self._ground.checkpoint, self._ground.samples)
            self._check_budgets()
            trial = self._record(Phase.BASE, losses, Verdict.BASE)
            if not trial.loss < float("inf"):
                raise CheckpointError(
                    f"the model's loss on the validation set is {trial.loss}; check its weights and labels"
                )
        self._min_loss, self._milliseconds = trial.loss, trial.milliseconds
        return trial

    def _check_budgets(self) -> None:
        """Refuse a budget that no plan keeps, before the level table is measured."""
        cost_of, dimensions, least = self._cost_of(), self._ground.dimensions, self._ground.config.budgets[-1]
        blocks = range(2 * dimensions.layers)
        whole = sum(cost_of(block, range(sizes_of(block, dimensions)[0])) for block in blocks)
        total = whole if self._milliseconds is not None else self._ground.targets.encoder_operations(self._full)
        left = (total - whole + sum(cost_of(block, ()) for block in blocks)) / total
        if least <= left:
            raise ConfigError(
                f"knob budgets: {least:g} is less than this model can go to; without any head or neuron its layers still take "
                f"{left:.3f} of the {self._ground.config.cost}; leave out what is not above that"
            )

    def budget(self, share: float, before: Plan | None) -> Trial | None:
        """The trial of the best plan within a share of the encoder's cost; None if the plan is the same as before."""
        stored = self._replay.upcoming
        if stored is not None and stored.element != encoder_share(share):
            return None  # the plan was the same as before; a trace of another run is detected at the end
        trial = self._replay.next(encoder_share(share))
        if trial is not None:
            if trial.plan is None:
                raise PlanError(f"the stored trace is not one of this run: its trial {trial.seq} has no plan")
            self._levels = self._levels or trial.levels
        else:
            plan = self._plan_within(share)
            if plan is None or plan == before or (before is None and plan == self._full):
                return None
            losses = self._losses(self._ground.model_of(plan))
            trial = self._record(Phase.BUDGET, losses, Verdict.ACCEPT, encoder_share(share), plan)
        self._min_loss = min(self._min_loss, trial.loss)
        return trial

    def end(self) -> None:
        """Check that every stored trial belongs to this run.

        Raises:
            PlanError: a stored trial does not.
        """
        stored = self._replay.upcoming
        if stored is not None:
            raise PlanError(
                f"the stored trace is not one of this run: its trial {stored.seq} is {stored.element}, which is not one of its "
                "budgets"
            )

    def _plan_within(self, share: float) -> Plan | None:
        ground = self._ground
        if self._table is None:
            if self._levels is None:
                self._levels = self._unstored = measure_levels(ground)
            self._table = level_table(self._levels, ground.dimensions, self._cost_of())
        blocks = [[Choice(level.cost, level.divergence) for level in levels] for levels in self._table]
        whole = sum(levels[0].cost for levels in self._table)
        total = whole if self._milliseconds is not None else ground.targets.encoder_operations(self._full)
        chosen = allocate(blocks, share * total - (total - whole))  # what lies outside the blocks stays
        if chosen is None:
            return None
        plan = self._full
        for block, index in enumerate(chosen):
            plan = with_units(plan, block, self._table[block][index].units)
        return plan

    def _cost_of(self) -> Callable[[int, Sequence[int]], float]:
        """The function from a block's number and its kept units to its cost."""
        operations, full, milliseconds = self._ground.targets.encoder_operations, self._full, self._milliseconds
        if milliseconds is None:
            empty = [operations(with_units(full, block, ())) for block in range(2 * len(full.layers))]
            return lambda block, kept: operations(with_units(full, block, kept)) - empty[block]
        taken = [
            dict(zip(sizes_of(block, self._ground.dimensions), measured, strict=True))
            for block, measured in enumerate((milliseconds.attention, milliseconds.ffn))
        ]
        return lambda block, kept: taken[block % 2][len(kept)]

    def _losses(self, model: Any) -> Tensor:
        samples = self._ground.samples
        return samples.per_sample(predict(model, self._ground.checkpoint.task, samples).losses)

    def _base_losses(self) -> Tensor:
        if self._base is None:
            self._base = self._ground.samples.per_sample(self._ground.untouched.predictions(keep=False).losses)
        return self._base

    def _record(
        self, phase: Phase, losses: Tensor, verdict: Verdict, element: str | None = None, plan: Plan | None = None
    ) -> Trial:
        ground, is_base = self._ground, phase is Phase.BASE
        loss = losses.mean().item()
        left = ground.targets.parameters
        trial = Trial(
            seq=self._replay.seq,
            phase=phase,
            element=element,
            loss=loss,
            loss_is_bound=False,
            loss_band=0.0,
            helped=None if is_base else int((losses < self._base_losses()).sum()),
            samples=len(losses),
            total=len(losses),
            min_loss=loss if is_base else self._min_loss,
            verdict=verdict,
            precision="float32",
            parameters=0 if plan is None else left(self._full) - left(plan),
            seconds=ground.clock() - self._started,
            plan=None if plan is None else plan.layers,
            milliseconds=self._milliseconds if is_base else None,
            levels=self._unstored,
        )
        self._unstored = None
        self._replay.seq += 1
        return trial

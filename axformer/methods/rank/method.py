"""Ranked pruning as a method: units leave in the order of a score, some in every step, and every step is a trial.

The baselines of Table IV of the AxFormer paper ("we prune 5 % of the least important weights at a time"), of *Why Can You Lay
Off Heads?* (Chiang et al., 2020, section 3), and of Molchanov et al. (2017). Unlike a pass, nothing is tried: the score alone
decides. The result depends on the checkpoint, the data and the knobs alone, so a resumed run goes on from the stored plans.
"""

import hashlib
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from axformer.config.rank import RankConfig
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.base import Extras, Ground
from axformer.methods.compress.sizes import with_units
from axformer.methods.rank.ranking import (
    Scores,
    Unit,
    all_units,
    gone_after,
    leaving_next,
    normalised,
    of_block,
)
from axformer.methods.rank.scores import Ranked, owners_of, scores_of
from axformer.methods.replay import Replay
from axformer.methods.whole_plans import WholePlans
from axformer.model.masking import masked
from axformer.plan.elements import Dimensions, head, neurons, units_left
from axformer.plan.plan import Plan, kept_neurons
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.repair.in_place import masked_and_fitted
from axformer.repair.recovery import Origin, Recovery, check_own_weights
from axformer.repair.refit import Fits, Refits
from axformer.repair.training import Training
from axformer.scores.measured import Measured
from axformer.wire.steps import Counter, StepName

RANKING = "ranking.jsonl"
"""The file with the score of every unit of the untouched model, and the step in which it left."""


def ranking_file(ground: Ground, trace: Sequence[Trial]) -> Mapping[str, str]:
    """``ranking.jsonl``: one line for each unit that may leave, the lowest score of the untouched model first."""
    return {RANKING: "".join(json.dumps(line) + "\n" for line in _ranking(ground, trace))}


class StepOrigins:
    """The origins of one run's steps, each the trained model of the step before; see
    :class:`axformer.repair.recovery.Origins`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self.steps: list[Plan] = []
        """The plans of the steps so far."""

    def of(self, plan: Plan) -> Origin:
        """The origin of a step, or of the next one."""
        before = self.steps[: self.steps.index(plan)] if plan in self.steps else self.steps
        said = "".join(one.model_dump_json() for one in before)
        history = f"after {hashlib.sha256(said.encode()).hexdigest()}" if before else ""
        return Origin(self._checkpoint.model, history, before[-1] if before else None)


def _recovery(
    checkpoint: Checkpoint,
    training: Training,
    deciding: DataSet,
    config: RankConfig,
    refits: Fits | None,  # noqa: ARG001 - as for every method
) -> Recovery | None:
    if not config.finetune_each:
        return None
    check_own_weights(checkpoint, f"finetune_each={config.finetune_each}", "leave it out")
    settings = training.settings.model_copy(update={"epochs": config.finetune_each})
    return Recovery(checkpoint, replace(training, settings=settings), deciding, StepOrigins(checkpoint))


class Rank:
    """See :class:`axformer.methods.base.Method`."""

    name = "rank"
    fits = Refits
    extras = Extras(recovery=_recovery, files=ranking_file)

    def check(self, config: RankConfig, dimensions: Dimensions) -> None:
        """Check that a step removes at least one unit of each kind."""
        for kind, total in _totals(config, dimensions).items():
            if not gone_after(config.shares[-1], total):
                raise ConfigError(
                    f"until={config.until:g} removes none of this model's {total} {kind}; give a larger share, or other units"
                )

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Yield the untouched model, then a trial for every step that removes something."""
        run = _Run(ground, Replay(replay))
        yield run.plans.base()
        for share in ground.config.shares:
            trial = run.step(share)
            if trial is None:
                continue
            yield trial
            if ground.targets.is_reached(run.plan):
                return
        run.plans.end()


class _Run:
    """The state of one run: what is left, and the scores of the untouched model where they are used throughout."""

    def __init__(self, ground: Ground, replay: Replay) -> None:
        self._ground = ground
        self.plans = WholePlans(ground, replay, Phase.RANK)
        self._full = self.plan = Plan.full(ground.dimensions)
        self._left = all_units(_sizes(ground.dimensions))
        self._first: Scores | None = None
        self._owners = owners_of(ground.checkpoint)
        self._origins: StepOrigins | None = None
        if ground.recovery is not None and isinstance(ground.recovery.origins, StepOrigins):
            self._origins = ground.recovery.origins
            self._origins.steps.clear()

    def step(self, share: float) -> Trial | None:
        """The trial of the model after a step; None if the step is too small to remove anything."""
        element = units_left(share)
        if self.plans.is_left_out(element):
            return None
        trial = self.plans.stored(element)
        if trial is None:
            leaving = self._leaving(share)
            if not leaving:
                return None
            trial = self.plans.tried(element, _without(self.plan, leaving), self._verdict)
        assert trial.plan is not None, "a step's trial holds its plan"
        self.plan = Plan(layers=trial.plan)
        if self._origins is not None:
            self._origins.steps.append(self.plan)
        self._left = set(_units_of(self.plan))
        return trial

    def _leaving(self, share: float) -> list[Unit]:
        ground, config = self._ground, self._ground.config
        scores = self._scores(share)
        leaving: list[Unit] = []
        for kind, total in _totals(config, ground.dimensions).items():
            parity = _PARITY[kind]
            left = {unit for unit in self._left if unit[0] % 2 == parity}
            leaving += leaving_next(
                {block: values for block, values in scores.items() if block % 2 == parity},
                left,
                gone_after(share, total) - (total - len(left)),
                owners=self._owners,
                keeps_one=config.keep_one_head and kind == "heads",
            )
        return leaving

    def _scores(self, share: float) -> Scores:
        """The normalised scores that decide on a step."""
        if self._ground.config.reestimate:
            return _measure(self._ground, self.plan, share)
        self._first = self._first or _measure(self._ground, self._full, share)
        return self._first

    def _verdict(self, measured: Measured) -> Verdict:
        relative = self._ground.config.relative
        if relative is None:
            return Verdict.ACCEPT
        enough = relative * self.plans.metric(self.plans.untouched)
        return Verdict.ACCEPT if self.plans.metric(measured) >= enough else Verdict.REJECT


_PARITY = {"heads": 0, "neurons": 1}
"""Of the numbers of the blocks that have such units."""


def _totals(config: RankConfig, dimensions: Dimensions) -> dict[str, int]:
    """How many units of each kind that may leave a model has."""
    all_of = {
        "heads": dimensions.layers * dimensions.heads,
        "neurons": dimensions.layers * dimensions.intermediate_size,
    }
    return {kind: total for kind, total in all_of.items() if config.units in ("both", kind)}


def _sizes(dimensions: Dimensions) -> list[int]:
    return [dimensions.heads, dimensions.intermediate_size] * dimensions.layers


def _units_of(plan: Plan) -> Iterator[Unit]:
    for index, layer in enumerate(plan.layers):
        yield from ((2 * index, unit) for unit in layer.heads)
        yield from ((2 * index + 1, unit) for unit in kept_neurons(layer))


def _without(plan: Plan, leaving: Sequence[Unit]) -> Plan:
    """The plan without some units. A block stays even without units."""
    left = set(_units_of(plan)) - set(leaving)
    for block in sorted({block for block, _ in leaving}):
        plan = with_units(plan, block, of_block(left, block))
    return plan


def _measure(ground: Ground, plan: Plan, share: float) -> Scores:
    """The normalised scores of all units of the model that a plan leaves."""
    checkpoint, config, recovery = ground.checkpoint, ground.config, ground.recovery
    if recovery is not None and plan != Plan.full(ground.dimensions):
        checkpoint = replace(checkpoint, model=recovery.whole_of(plan, ground.surroundings))
    Counter(StepName.RANKING, 1, ground.surroundings.on_step).begin()

    def masking() -> AbstractContextManager[None]:
        model, architecture = checkpoint.model, checkpoint.architecture
        if ground.refits is None:
            return masked(model, architecture, plan)
        return masked_and_fitted(model, architecture, plan, ground.refits.of(plan, ground.surroundings.check_cancelled))

    ground.surroundings.check_cancelled()
    ranked = Ranked(checkpoint, ground.samples, masking, share, config.seed, owners_of(checkpoint))
    return normalised(scores_of(config.score, ranked), config.normalisation)


def _ranking(ground: Ground, trace: Sequence[Trial]) -> list[dict[str, Any]]:
    """The units of the untouched model by rank, with the step in which each left."""
    config: RankConfig = ground.config
    scores = _measure(ground, Plan.full(ground.dimensions), config.shares[0])
    steps: dict[Unit, int] = {}
    left = all_units(_sizes(ground.dimensions))
    for number, trial in enumerate(trial for trial in trace if trial.plan is not None):
        assert trial.plan is not None
        now = set(_units_of(Plan(layers=trial.plan)))
        steps |= dict.fromkeys(left - now, number + 1)
        left = now
    lines = []
    for kind in _totals(config, ground.dimensions):
        units = [(block, unit) for block in scores if block % 2 == _PARITY[kind] for unit in range(len(scores[block]))]
        units.sort(key=lambda one: (float(scores[one[0]][one[1]]), one[1], one[0]))
        for rank, (block, unit) in enumerate(units):
            element = neurons(block // 2, unit, unit + 1) if block % 2 else head(block // 2, unit)
            score = float(scores[block][unit])
            lines.append({"element": element.id, "score": score, "rank": rank, "step": steps.get((block, unit))})
    return lines

"""Ranked pruning as a method: units leave in the order of a score, some in every step, and every step is a trial.

The baselines of Table IV of the AxFormer paper ("we prune 5 % of the least important weights at a time"), of *Why Can You Lay
Off Heads?* (Chiang et al., 2020, section 3), and of Molchanov et al. (2017). Unlike a pass, nothing is tried: the score alone
decides. The result depends on the checkpoint, the data and the knobs alone, so a resumed run goes on from the stored plans.
"""

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from axformer.config.rank import RANKING, RankConfig
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.base import Ground, Method, Replay
from axformer.methods.whole_plans import WholePlans
from axformer.model.masking import masked
from axformer.plan.blocks import Block, BlockKind
from axformer.plan.elements import Dimensions, units_left
from axformer.plan.plan import Plan
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.repair.recovery import Origin, Recovery, check_own_weights
from axformer.repair.refit import masked_and_fitted
from axformer.repair.training import Training
from axformer.scores.importance import Ranked, owners_of, scores_of
from axformer.scores.measured import Measured
from axformer.scores.ranking import (
    Scores,
    Unit,
    gone_after,
    leaving_next,
    normalised,
    units_of,
    without_units,
)
from axformer.wire.steps import Counter, StepName


class StepOrigins:
    """The origins of one run's steps, each the trained model of the step before; see
    :data:`axformer.repair.recovery.Origins`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self.steps: list[Plan] = []
        """The plans of the steps so far."""

    def __call__(self, plan: Plan) -> Origin:
        """The origin of a step, or of the next one."""
        before = self.steps[: self.steps.index(plan)] if plan in self.steps else self.steps
        said = "".join(one.model_dump_json() for one in before)
        history = f"after {hashlib.sha256(said.encode()).hexdigest()}" if before else ""
        return Origin(self._checkpoint.model, history, before[-1] if before else None)


class Rank(Method):
    """See :class:`axformer.methods.base.Method`."""

    def recovery(self, ground: Ground, training: Training, deciding: DataSet) -> Recovery | None:
        config, checkpoint = ground.config, ground.checkpoint
        if not config.finetune_each:
            return None
        check_own_weights(checkpoint, f"finetune_each={config.finetune_each}", "leave it out")
        settings = training.settings.model_copy(update={"epochs": config.finetune_each})
        return Recovery(checkpoint, replace(training, settings=settings), deciding, StepOrigins(checkpoint))

    def files(self, ground: Ground, trace: Sequence[Trial]) -> Mapping[str, str]:
        """``ranking.jsonl``: one line for each unit that may leave, the lowest score of the untouched model first."""
        return {RANKING: "".join(json.dumps(line) + "\n" for line in _ranking(ground, trace))}

    def check(self, config: RankConfig, checkpoint: Checkpoint) -> None:
        """Check that a step removes at least one unit of each kind."""
        for kind, total in _totals(config, checkpoint.dimensions).items():
            if not gone_after(config.shares[-1], total):
                raise ConfigError(
                    f"until={config.until:g} removes none of this model's {total} {_UNITS[kind]}; give a larger share, or "
                    "other units"
                )

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Yield the untouched model, then a trial for every step that removes something."""
        if (ground.score is None) is (ground.config.score == "given"):
            raise ConfigError(
                f"score={ground.config.score}: score=given takes a function; pass it to axformer.prune as score, or name "
                "a score"
            )
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
        self._left = units_of(Plan.full(ground.dimensions))
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
            trial = self.plans.tried(element, without_units(self.plan, leaving), self._verdict)
        assert trial.plan is not None, "a step's trial holds its plan"
        self.plan = Plan(layers=trial.plan)
        if self._origins is not None:
            self._origins.steps.append(self.plan)
        self._left = units_of(self.plan)
        return trial

    def _leaving(self, share: float) -> list[Unit]:
        ground, config = self._ground, self._ground.config
        scores = self._scores(share)
        leaving: list[Unit] = []
        for kind, total in _totals(config, ground.dimensions).items():
            left = {unit for unit in self._left if unit[0].kind is kind}
            leaving += leaving_next(
                {block: values for block, values in scores.items() if block.kind is kind},
                left,
                gone_after(share, total) - (total - len(left)),
                owners=self._owners,
                keeps_one=config.keep_one_head and kind is BlockKind.ATTENTION,
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


_UNITS = {BlockKind.ATTENTION: "heads", BlockKind.FFN: "neurons"}
"""What the units of a block are called."""


def _totals(config: RankConfig, dimensions: Dimensions) -> dict[BlockKind, int]:
    """How many units that may leave the blocks of each kind have."""
    return {
        kind: dimensions.layers * Block(0, kind).size(dimensions)
        for kind, units in _UNITS.items()
        if config.units in ("both", units)
    }


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
    return normalised(scores_of(ground.score or config.score, ranked), config.normalisation)


def _ranking(ground: Ground, trace: Sequence[Trial]) -> list[dict[str, Any]]:
    """The units of the untouched model by rank, with the step in which each left."""
    config: RankConfig = ground.config
    scores = _measure(ground, Plan.full(ground.dimensions), config.shares[0])
    steps: dict[Unit, int] = {}
    left = units_of(Plan.full(ground.dimensions))
    for number, trial in enumerate(trial for trial in trace if trial.plan is not None):
        assert trial.plan is not None
        now = units_of(Plan(layers=trial.plan))
        steps |= dict.fromkeys(left - now, number + 1)
        left = now
    lines = []
    for kind in _totals(config, ground.dimensions):
        units = [(block, unit) for block in scores if block.kind is kind for unit in range(len(scores[block]))]
        units.sort(key=lambda one: (float(scores[one[0]][one[1]]), one[1], one[0]))
        for rank, (block, unit) in enumerate(units):
            score = float(scores[block][unit])
            lines.append(
                {"element": block.unit(unit).id, "score": score, "rank": rank, "step": steps.get((block, unit))}
            )
    return lines

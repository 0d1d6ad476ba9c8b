"""AxFormer as a method: one pass of Algorithm 1, or six with ``order=search`` (appendix A)."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing, nullcontext

from axformer.config import PassConfig
from axformer.errors import PlanError
from axformer.methods.axformer.algorithm import search
from axformer.methods.axformer.metric_limit import MetricLimit
from axformer.methods.axformer.ordering import inspection_order
from axformer.methods.axformer.orders import opening_of, pass_configs
from axformer.methods.base import Extras, Ground
from axformer.methods.rank.ranking import Scores
from axformer.methods.rank.scores import Ranked, owners_of, scores_of
from axformer.methods.traces import passes_in
from axformer.plan.elements import Dimensions, Element, neuron_group
from axformer.plan.trial import Trial
from axformer.repair.local import LocalFits
from axformer.wire.steps import Counter, StepName


class AxFormer:
    """Hierarchical greedy removal with selective hard attention (Nagarajan et al., AxFormer, Algorithm 1)."""

    name = "axformer"
    fits = LocalFits
    extras = Extras()

    def check(self, config: PassConfig, dimensions: Dimensions) -> None:
        """Check that the order names blocks of the model."""
        for pass_config in pass_configs(config):
            inspection_order(dimensions, pass_config)

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Run one pass after another. The first trials are the same in all passes: they are evaluated in the first one and
        replayed in the others, so that each has a complete trace."""
        configs, stored = pass_configs(ground.config), passes_in(replay)
        if len(stored) > len(configs):
            raise PlanError(f"the stored trace holds {len(stored)} passes, but this run has {len(configs)}")
        opening: list[Trial] = []
        for index, config in enumerate(configs):
            given = stored[index] if index < len(stored) else []
            trace: list[Trial] = []
            with closing(_run_pass(ground, config, max(given, opening, key=len))) as running:
                for trial in running:
                    trace.append(trial)
                    yield trial
            opening = opening or opening_of(trace)


def _run_pass(ground: Ground, config: PassConfig, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
    limit = None
    if config.within_points is not None and config.trades_within_points:
        recording = ground.untouched.recording
        limit = MetricLimit(ground.checkpoint.task, ground.samples, config.within_points, recording)
    scores = _importance(ground) if config.takes_gradients else None
    with ground.untouched.evaluator(recorded=limit is not None) as evaluator:
        yield from search(
            evaluator,
            ground.dimensions,
            config,
            parameters_left=ground.targets.parameters,
            is_enough=ground.targets.is_reached,
            metric_limit=limit,
            ranked_groups=_ranked_groups(ground, config, scores),
            importance=None if scores is None else [float(scores[block].sum()) for block in sorted(scores)],
            replay=replay,
            clock=ground.surroundings.clock,
        )


def _importance(ground: Ground) -> Scores:
    """The importance of every unit of the untouched model: the mean absolute gradient of a gate on it."""
    Counter(StepName.RANKING, 1, ground.surroundings.on_step).begin()
    checkpoint = ground.checkpoint
    ranked = Ranked(checkpoint, ground.samples, nullcontext, share=0.0, seed=0, owners=owners_of(checkpoint))
    return scores_of("taylor", ranked)


def _ranked_groups(ground: Ground, config: PassConfig, scores: Scores | None) -> Callable[[int], list[Element]] | None:
    """The function that returns the groups of neurons of a layer: those first that are cheapest to repair, or least important;
    None for groups of neighbouring neurons."""
    if not config.has_ranked_groups:
        return None
    size, fits = config.group_size(ground.dimensions.intermediate_size), ground.refits

    def groups_of(layer: int) -> list[Element]:
        block = 2 * layer + 1
        if isinstance(fits, LocalFits):
            order = fits.order(block).units
        else:
            assert scores is not None, "groups are ranked by importance"
            order = scores[block].argsort(kind="stable").tolist()
        return [neuron_group(layer, order[start : start + size]) for start in range(0, len(order), size)]

    return groups_of

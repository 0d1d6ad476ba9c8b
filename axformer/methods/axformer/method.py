"""AxFormer as a method: a pass of Algorithm 1."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import nullcontext

from axformer.config import PassConfig
from axformer.data.batches import Samples
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.methods.axformer.algorithm import search
from axformer.methods.axformer.judge import (
    FEWEST_CHANGED,
    MetricLimit,
    changed_by_hard_attention,
    tries_hard_attention,
    voters_of,
)
from axformer.methods.axformer.ordering import inspection_order
from axformer.methods.axformer.whole import Whole
from axformer.methods.base import Ground, Method
from axformer.plan.blocks import Block, BlockKind
from axformer.plan.elements import Element, neuron_group
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.repair.local import LocalFits
from axformer.repair.refit import can_refit
from axformer.scores.importance import Ranked, owners_of, scores_of
from axformer.scores.ranking import Scores
from axformer.tasks.embedding import SentenceEmbedding
from axformer.tasks.regression import Regression
from axformer.wire.steps import Counter, StepName


class AxFormer(Method):
    """Hierarchical greedy removal with selective hard attention (Nagarajan et al., AxFormer, Algorithm 1)."""

    fits = LocalFits

    def check(self, config: PassConfig, checkpoint: Checkpoint) -> None:
        """Check that the order names blocks of the model, that each layer has weights of its own if they are fitted, and that
        there are probabilities where temperatures are."""
        inspection_order(checkpoint.dimensions, config)
        if config.needs.temperatures and isinstance(checkpoint.task, Regression | SentenceEmbedding):
            raise ConfigError(
                f"knob conditions: a model for {checkpoint.task.name} answers with numbers, which have no temperature; leave "
                "'temperature' out"
            )
        if config.needs.fitting and not can_refit(checkpoint.model, checkpoint.architecture):
            raise ConfigError(
                f"knob repair=refit: the layers of models of type '{checkpoint.architecture.model_type}' share their weights, "
                "which cannot be fitted to one layer; leave repair out"
            )

    def notes(self, config: PassConfig, samples: Samples, *, is_trained: bool) -> Iterator[str]:  # noqa: ARG002 - for methods
        kept, changed = config.attention_top_k, changed_by_hard_attention(samples, config)
        if kept is None:
            return
        counted = voters_of(samples, config, is_hard=False)
        changing, everyone = int((counted & changed).sum()), int(counted.sum())
        where = f"only {changing:,} of {everyone:,} different inputs have more than attention_top_k={kept} tokens"
        if not tries_hard_attention(samples, config):
            yield f"hard attention is not tried: {where}, and it can change no others (it takes {FEWEST_CHANGED})"
        elif config.counts_every_row and 2 * changing < everyone:
            how = "helped" if config.variant.ties_help else "not helped"
            yield (
                f"hard attention: {where}; preset=published counts the others as {how} by it, as the authors' program does, "
                "and every other preset leaves them out"
            )

    def trials(self, ground: Ground, replay: Sequence[Trial]) -> Generator[Trial, None, None]:
        """Run the pass."""
        config, limit = ground.config, None
        if config.within_points is not None and config.trades_within_points:
            limit = MetricLimit(config.within_points, ground.untouched.recording)
        scores = _importance(ground) if config.needs.gradients else None
        watches = not {"temperature", "metric"}.isdisjoint(config.conditions)
        with ground.untouched.evaluator(recorded=watches or limit is not None) as evaluator:
            if watches:
                evaluator = Whole(evaluator, ground.untouched.recording, Plan.full(ground.dimensions))
            yield from search(
                evaluator,
                ground.dimensions,
                config,
                parameters_left=ground.targets.parameters,
                is_enough=ground.targets.is_reached,
                metric_limit=limit,
                ranked_groups=_ranked_groups(ground, config, scores),
                importance=None
                if scores is None
                else {block.element: float(values.sum()) for block, values in scores.items()},
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
        block = Block(layer, BlockKind.FFN)
        if isinstance(fits, LocalFits):
            order = fits.order(block).units
        else:
            assert scores is not None, "groups are ranked by importance"
            order = scores[block].argsort(kind="stable").tolist()
        return [neuron_group(layer, order[start : start + size]) for start in range(0, len(order), size)]

    return groups_of

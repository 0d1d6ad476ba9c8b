"""Judges a change: measures the model with it until the accept rule is decided, then applies safeguard and metric limit.

The rule is applied to one validation set hundreds of times, and on a small set some trial always looks good by chance. So the
safeguard asks that a gain holds on every fold of the data. It gets the gain of every sample: its loss just before the change
minus its loss after it, whatever ``helped_reference`` says. Gains against the untouched model would all look good as soon as
anything had been gained.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.config import PassConfig
from axformer.data.batches import Samples
from axformer.errors import ConfigError
from axformer.evaluation.base import Evaluator, Part
from axformer.methods.axformer.acceptance import Bounds, Rule, decided, verdict_of_kept
from axformer.methods.axformer.state import PassState
from axformer.methods.axformer.whole import Whole
from axformer.plan.elements import Element, ElementKind
from axformer.plan.plan import Plan
from axformer.plan.trial import Verdict
from axformer.scores.measured import Recording
from axformer.scores.task_tests import is_within
from axformer.wire.metrics import first_metric

SLACK = 1e-6
"""Relative slack of the bounds: a float32 mean may round to slightly less than a lower bound of the same mean."""


class Tally:
    """The losses of one trial so far, and bounds on its final result.

    A loss is at least 0 in every task, so a missing sample may add nothing or any amount.
    """

    def __init__(self, voters: Tensor, reference: Tensor | None, *, ties_help: bool) -> None:
        """
        Args:
            voters: the samples that are counted (:func:`voters_of`), bool, shape (samples,).
            reference: what their losses are compared with, shape (samples,); None if there is nothing to compare.
            ties_help: whether an equal loss counts as helped.
        """
        self._voters = voters
        self._reference = reference
        self._ties_help = ties_help
        self._sum = 0.0
        self._arrived = 0
        self.losses = torch.full(voters.shape, math.nan)
        """Shape (samples,); NaN for samples that have not arrived."""
        self.total = int(voters.sum())
        """Number of samples that are counted."""
        self.seen = 0
        """How many of those have arrived."""
        self.helped = 0
        """How many of those have a lower loss than the reference."""

    def add(self, part: Part) -> None:
        """Add the losses of some samples."""
        self.losses[part.places] = part.losses
        self._arrived += len(part.places)
        self._sum += part.losses.double().sum().item()
        votes = self._voters[part.places]
        self.seen += int(votes.sum())
        if self._reference is not None:
            self.helped += self._count_helped(part.losses[votes], self._reference[part.places][votes])

    @property
    def votes(self) -> Tensor:
        """Of each sample that is counted 1 if it is helped and else 0, NaN of the others; shape (samples,)."""
        assert self._reference is not None, "there is something to compare with"
        helped = self.losses <= self._reference if self._ties_help else self.losses < self._reference
        return helped.double().masked_fill(~self._voters, math.nan)

    @property
    def is_complete(self) -> bool:
        """Whether every sample has arrived."""
        return self._arrived == len(self.losses)

    @property
    def loss(self) -> float:
        """The mean loss, or a lower bound of it while samples are missing."""
        return self.losses.mean().item() if self.is_complete else self.bounds.loss[0]

    @property
    def bounds(self) -> Bounds:
        """Bounds of the mean loss and of the number of helped samples."""
        if self.is_complete:
            loss = self.losses.mean().item()
            return Bounds((loss, loss), (self.helped, self.helped))
        low = self._sum / len(self.losses) * (1 - SLACK)
        return Bounds((low, math.inf), (self.helped, self.helped + self.total - self.seen))

    def _count_helped(self, losses: Tensor, reference: Tensor) -> int:
        return int((losses <= reference).sum() if self._ties_help else (losses < reference).sum())


FEWEST_CHANGED = 20
"""Inputs that hard attention must be able to change for its trials to be made: four in each of the parts of ``robust``."""


def changed_by_hard_attention(samples: Samples, config: PassConfig) -> Tensor:
    """Which samples hard attention can change, those of more than K tokens: bool, shape (samples,)."""
    kept = config.attention_top_k
    return torch.zeros(len(samples), dtype=torch.bool) if kept is None else samples.longest > kept


def voters_of(samples: Samples, config: PassConfig, *, is_hard: bool) -> Tensor:
    """The samples that are counted as helped or not (Algorithm 1, lines 4 and 12), bool, shape (samples,).

    One is counted for each different input, and for hard attention only those that it can change: a sample of at most K tokens
    is neither helped nor harmed. The paper divides by all samples (line 12), so that where most are short no hard attention is
    ever kept, and its text asks for a smaller loss alone (section III-B). The authors' program counts every row.

    Args:
        is_hard: whether the change is hard attention in a layer.
    """
    if config.counts_every_row:
        return torch.ones(len(samples), dtype=torch.bool)
    return samples.voters & changed_by_hard_attention(samples, config) if is_hard else samples.voters


def tries_hard_attention(samples: Samples, config: PassConfig) -> bool:
    """Whether trials of hard attention are made: where it can change enough inputs, or so many of all that the paper's letter
    could accept it too. Where every row counts, one that can change is enough."""
    if config.counts_every_row:
        return bool(changed_by_hard_attention(samples, config).any())
    everyone, votes = (int(voters_of(samples, config, is_hard=is_hard).sum()) for is_hard in (False, True))
    return votes >= FEWEST_CHANGED or votes > config.majority_fraction * everyone


_COARSE = (ElementKind.LAYER, ElementKind.ATTENTION, ElementKind.FFN)


@dataclass(frozen=True)
class Judged:
    """The measurement of a change, and the verdict."""

    tally: Tally
    verdict: Verdict
    frequency: float | None = None
    """See :attr:`axformer.plan.trial.Trial.frequency`."""


IsSafe = Callable[[Tensor], bool]
"""Takes per-sample gains, float64 of shape (samples,); says whether a trial that the rule accepts may be accepted."""


class MetricLimit:
    """Checks whether the metric of a fully measured trial is still within the points.

    The loss cannot show that. An overconfident model lowers its loss when it always answers the same, with the class
    frequencies as probabilities.
    """

    def __init__(self, points: float, recording: Recording) -> None:
        """Let the metric fall by so many points; ``recording`` is the task of the evaluator of the deciding samples."""
        self._points = points
        self._untouched: float | None = None
        self._recording = recording

    def begin(self, losses: Tensor) -> None:
        """Store the metric of the untouched model, which was just measured, given its losses, shape (samples,)."""
        self._untouched = self._metric(losses)

    def allows(self, losses: Tensor, share: float) -> bool:
        """Whether the metric of the model that was just measured fell by at most a share of the points.

        Args:
            losses: its per-sample losses, shape (samples,).
            share: share of the points that it may lose; 1 is all of them.
        """
        assert self._untouched is not None, "the untouched model is measured first"
        return is_within(self._untouched - self._metric(losses), share * self._points)

    def _metric(self, losses: Tensor) -> float:
        figures = self._recording.measured(losses).figures
        return figures[first_metric(figures)]


class Judge:
    """The accept rule (Algorithm 1, lines 3, 4 and 19) together with the safeguard and the metric limit."""

    def __init__(
        self,
        evaluator: Evaluator,
        config: PassConfig,
        is_safe: IsSafe | None,
        metric_limit: MetricLimit | None,
    ) -> None:
        """Judge without a safeguard, or by the loss alone, where ``is_safe`` or ``metric_limit`` is None."""
        self._evaluator = evaluator
        self._config = config
        samples = evaluator.samples
        self._voters, self._hard_voters = (voters_of(samples, config, is_hard=is_hard) for is_hard in (False, True))
        self._is_safe = is_safe
        self._draws = Draws(samples, config.seed) if "stable" in config.conditions else None
        self._metric_limit = metric_limit
        self.trade_share: float | None = None
        """The share of the tolerance that this round of the trade may spend; None until the gains are taken."""

    def base(self, plan: Plan) -> Judged:
        """Measure the untouched model (line 7)."""
        tally = Tally(self._voters, None, ties_help=False)
        for part in self._evaluator.parts(plan):
            tally.add(part)
        return Judged(tally, Verdict.BASE)

    def judge(self, element: Element, plan: Plan, state: PassState, *, has_parts: bool) -> Judged:
        """Measure a plan with one more element changed until its verdict is known (lines 3, 4 and 19).

        Args:
            element: the changed element; ``has_parts`` says whether it has parts left to try.
            plan: the plan with the element changed.
            state: the current plan with its losses, for comparison.
        """
        voters = self._hard_voters if element.kind is ElementKind.HARD_ATTENTION else self._voters
        rule = self._rule(element, state, int(voters.sum()), has_parts=has_parts)
        tally = self._measured(plan, rule, Tally(voters, state.reference, ties_help=self._config.variant.ties_help))
        verdict = decided(tally.bounds, rule)
        assert verdict is not None, "a trial that is measured to the end is decided"
        if verdict is not Verdict.ACCEPT:
            return Judged(tally, verdict)
        frequency = self._frequency(tally, state)
        is_stable = frequency is None or frequency >= STABLE
        if not (is_stable and self._withstands(tally, plan, state)):
            verdict = verdict_of_kept(tally.loss, rule)
        return Judged(tally, verdict, frequency)

    def _frequency(self, tally: Tally, state: PassState) -> float | None:
        """How often draws of the rows accept what all rows accepted; None in a trade, or if nobody asks."""
        if self._draws is None or self.trade_share is not None:
            return None
        return self._draws.accepting(_gains(tally, state), tally.votes, self._config.majority_fraction)

    def _rule(self, element: Element, state: PassState, votes: int, *, has_parts: bool) -> Rule:
        config, share = self._config, self.trade_share
        allowed = None if share is None else 1 + share * (config.tolerance or 0.0)
        return Rule(
            min_loss=state.min_loss,
            helped_above=None if share is not None else config.majority_fraction * votes,
            loss_margin=config.variant.coarse_margin if element.kind in _COARSE else 1.0,
            refine_margin=config.refine_margin if has_parts else None,
            budget=None if allowed is None else allowed * state.base_loss,
        )

    def _measured(self, plan: Plan, rule: Rule, tally: Tally) -> Tally:
        """Measure a plan until its verdict is known, or to the end without ``early_decision``."""
        for part in self._evaluator.parts(plan):
            tally.add(part)
            if self._config.early_decision and decided(tally.bounds, rule) is not None:
                break
        return tally

    def _withstands(self, tally: Tally, plan: Plan, state: PassState) -> bool:
        """Whether a change with these losses may be accepted. Accepted changes are always measured to the end.

        A gain must pass the safeguard. A trade is not a gain, so the metric limit applies to it instead.
        """
        if self.trade_share is not None:
            return self._metric_limit is None or self._metric_limit.allows(tally.losses, self.trade_share)
        if self._is_safe is not None and not self._is_safe(_gains(tally, state)):
            return False
        if "metric" not in self._config.conditions:
            return True
        assert isinstance(self._evaluator, Whole), "plans are measured to their end"
        return self._evaluator.metric(plan) >= self._evaluator.metric(state.plan)


def _gains(tally: Tally, state: PassState) -> Tensor:
    """By how much the loss of each sample fell against the model just before the change, float64, shape (samples,)."""
    assert state.current is not None, "it is measured again after a replay"
    return state.current.double() - tally.losses.double()


def safeguard_of(config: PassConfig, samples: Samples) -> IsSafe | None:
    """The safeguard of a pass over these samples, with copies of an input in one fold; None if the knobs ask for none.

    Raises:
        ConfigError: there are fewer different inputs than folds.
    """
    if config.safeguard is None:
        return None
    folds = folds_of(int(samples.voters.sum()), config.safeguard, config.seed)[samples.inputs]
    return lambda gains: is_gain_on_each(gains, folds)


DRAWS, STABLE = 1_000, 0.9
"""Bootstrap draws, and the share of them in which the rule must accept."""


class Draws:
    """Bootstrap draws of the inputs, whose copies are drawn together (Meinshausen and Buehlmann, Stability Selection)."""

    def __init__(self, samples: Samples, seed: int) -> None:
        self._inputs = samples.inputs
        count = int(samples.voters.sum())
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(count, (DRAWS, count), generator=generator)
        self._times = torch.zeros(DRAWS, count).scatter_add_(1, drawn, torch.ones(DRAWS, count))
        """How often each draw has each input, shape (draws, inputs)."""

    def accepting(self, gains: Tensor, votes: Tensor, majority: float) -> float:
        """In which share of the draws the mean loss falls and more than the majority of those that vote are helped.

        Args:
            gains: the fall of each sample's loss, shape (samples,).
            votes: see :attr:`Tally.votes`.
        """
        counted = ~votes.isnan()
        fall, helped, voters = (
            self._times @ self._by_input(values) for values in (gains, votes.nan_to_num(), counted.double())
        )
        return float(((fall > 0) & (helped > majority * voters)).double().mean())

    def _by_input(self, values: Tensor) -> Tensor:
        return torch.zeros(self._times.shape[1], dtype=torch.float64).index_add_(0, self._inputs, values).float()


def folds_of(total: int, folds: int, seed: int) -> Tensor:
    """The fold of each input, shape (total,): a random split into folds whose sizes differ by at most one.

    Raises:
        ConfigError: there are fewer inputs than folds.
    """
    if total < folds:
        raise ConfigError(
            f"safeguard={folds} is more than the {total} different inputs among the rows that decide; give more data, or a "
            "smaller safeguard"
        )
    fold = torch.empty(total, dtype=torch.long)
    fold[torch.randperm(total, generator=torch.Generator().manual_seed(seed))] = torch.arange(total) % folds
    return fold


def is_gain_on_each(gains: Tensor, folds: Tensor) -> bool:
    """Whether the mean gain is above 0 on every fold, given the fold of each sample."""
    sums = torch.zeros(int(folds.max()) + 1, dtype=gains.dtype).index_add_(0, folds, gains)
    return bool((sums > 0).all())

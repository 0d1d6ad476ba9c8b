"""Judges a change: measures the model with it until the accept rule is decided, then applies safeguard and metric limit.

The rule is applied to one validation set hundreds of times, and on a small set some trial always looks good by chance. So the
safeguard asks that a gain holds on every fold of the data. It gets the gain of every sample: its loss just before the change
minus its loss after it, whatever ``helped_reference`` says. Gains against the untouched model would all look good as soon as
anything had been gained.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.config import PassConfig
from axformer.errors import ConfigError
from axformer.evaluation.base import Evaluator
from axformer.methods.axformer.acceptance import Rule, decided, verdict_of_kept
from axformer.methods.axformer.standing import Standing
from axformer.methods.axformer.tally import Tally
from axformer.plan.elements import Element, ElementKind
from axformer.plan.plan import Plan
from axformer.plan.trial import Verdict
from axformer.scores.measured import Recording
from axformer.scores.task_tests import is_within
from axformer.wire.metrics import first_metric

_COARSE = (ElementKind.LAYER, ElementKind.ATTENTION, ElementKind.FFN)


@dataclass(frozen=True)
class Judgement:
    """The measurement of a change, and the verdict."""

    tally: Tally
    verdict: Verdict
    precision: str
    """The number format that decided."""


IsSafe = Callable[[Tensor], bool]
"""Takes per-sample gains, float64 of shape (samples,); says whether a trial that the rule accepts may be accepted."""


class MetricLimit:
    """Checks whether the metric of a fully measured trial is still within the points.

    The loss cannot show that. An overconfident model lowers its loss when it always answers the same, with the class
    frequencies as probabilities.
    """

    def __init__(self, points: float, recording: Recording) -> None:
        """
        Args:
            points: how far the metric may fall.
            recording: that the evaluator of the deciding samples has for its task.
        """
        self._points = points
        self._untouched: float | None = None
        self._recording = recording

    def begin(self, losses: Tensor) -> None:
        """Store the untouched model's metric. Call this right after measuring that model.

        Args:
            losses: its per-sample losses, shape (samples,).
        """
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
        """
        Args:
            evaluator: measures losses.
            config: the knobs.
            is_safe: the safeguard as a function of each sample's gain; None for no safeguard.
            metric_limit: the limit of a trade on the metric; None to limit the loss only.
        """
        self._evaluator = evaluator
        self._config = config
        self._is_safe = is_safe
        self._metric_limit = metric_limit
        self.trade_share: float | None = None
        """The share of the tolerance that this round of the trade may spend; None until the gains are taken."""

    def base(self, plan: Plan) -> Judgement:
        """Measure the untouched model (line 7)."""
        tally = Tally(self._evaluator.total, None, ties_help=False)
        for part in self._evaluator.parts(plan):
            tally.add(part)
        return Judgement(tally, Verdict.BASE, self._evaluator.precision)

    def judge(self, element: Element, plan: Plan, standing: Standing, *, has_parts: bool) -> Judgement:
        """Measure a plan with one more element changed until its verdict is known (lines 3, 4 and 19).

        Args:
            element: the changed element.
            plan: the plan with the element changed.
            standing: the current plan with its losses, for comparison.
            has_parts: whether the element has parts left to try.
        """
        rule = self._rule(element, standing, has_parts=has_parts)
        tally = self._measured(plan, rule, standing.reference)
        verdict = decided(tally.bounds, rule)
        assert verdict is not None, "a trial that is measured to the end is decided"
        if verdict is Verdict.ACCEPT and not self._withstands(tally.losses, standing):
            verdict = verdict_of_kept(tally.loss, rule)
        return Judgement(tally, verdict, self._evaluator.precision)

    def _rule(self, element: Element, standing: Standing, *, has_parts: bool) -> Rule:
        config, share = self._config, self.trade_share
        allowed = None if share is None else 1 + share * (config.tolerance or 0.0)
        return Rule(
            min_loss=standing.min_loss,
            helped_above=None if share is not None else config.majority_fraction * self._evaluator.total,
            loss_margin=config.variant.coarse_margin if element.kind in _COARSE else 1.0,
            refine_margin=config.refine_margin if has_parts else None,
            budget=None if allowed is None else allowed * standing.base_loss,
        )

    def _measured(self, plan: Plan, rule: Rule, reference: Tensor | None) -> Tally:
        """Measure a plan until its verdict is known, or to the end without ``early_decision``."""
        tally = Tally(self._evaluator.total, reference, ties_help=self._config.variant.ties_help)
        for part in self._evaluator.parts(plan):
            tally.add(part)
            if self._config.early_decision and decided(tally.bounds, rule) is not None:
                break
        return tally

    def _withstands(self, losses: Tensor, standing: Standing) -> bool:
        """Whether a change with these losses may be accepted. Accepted changes are always measured to the end.

        A gain must pass the safeguard. A trade is not a gain, so the metric limit applies to it instead.
        """
        if self.trade_share is not None:
            return self._metric_limit is None or self._metric_limit.allows(losses, self.trade_share)
        if self._is_safe is None:
            return True
        assert standing.current is not None, "it is measured again after a replay"
        return self._is_safe(standing.current.double() - losses.double())


def safeguard_of(config: PassConfig, total: int) -> IsSafe | None:
    """The safeguard of a pass; None if the knobs ask for none.

    Args:
        config: the knobs.
        total: samples in the validation set.

    Raises:
        ConfigError: there are fewer samples than folds.
    """
    if config.safeguard is None:
        return None
    folds = folds_of(total, config.safeguard, config.seed)
    return lambda gains: is_gain_on_each(gains, folds)


def folds_of(total: int, folds: int, seed: int) -> Tensor:
    """The fold of each sample, shape (samples,): a random split into folds whose sizes differ by at most one.

    Raises:
        ConfigError: there are fewer samples than folds.
    """
    if total < folds:
        raise ConfigError(
            f"safeguard={folds} is more than the {total} validation samples; take at most {total}, or more data"
        )
    fold = torch.empty(total, dtype=torch.long)
    fold[torch.randperm(total, generator=torch.Generator().manual_seed(seed))] = torch.arange(total) % folds
    return fold


def is_gain_on_each(gains: Tensor, folds: Tensor) -> bool:
    """Whether the mean gain is above 0 on every fold, given the fold of each sample."""
    sums = torch.zeros(int(folds.max()) + 1, dtype=gains.dtype).index_add_(0, folds, gains)
    return bool((sums > 0).all())

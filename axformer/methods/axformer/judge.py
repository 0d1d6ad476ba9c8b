"""Judges a change: measures the model with it until the accept rule is decided, then applies the safeguards."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from axformer.config import PassConfig
from axformer.evaluation.base import Evaluator
from axformer.methods.axformer.acceptance import Rule, decided, verdict_of_kept
from axformer.methods.axformer.metric_limit import MetricLimit
from axformer.methods.axformer.standing import Standing
from axformer.methods.axformer.tally import Tally
from axformer.plan.elements import Element, ElementKind
from axformer.plan.plan import Plan
from axformer.plan.trial import Verdict

_COARSE = (ElementKind.LAYER, ElementKind.ATTENTION, ElementKind.FFN)


@dataclass(frozen=True)
class Judgement:
    """The measurement of a change, and the verdict."""

    tally: Tally
    verdict: Verdict
    precision: str
    """The number format that decided."""


class Judge:
    """The accept rule (Algorithm 1, lines 3, 4 and 19) together with the safeguard and the metric limit."""

    def __init__(
        self,
        evaluator: Evaluator,
        config: PassConfig,
        is_safe: Callable[[Tensor], bool] | None,
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

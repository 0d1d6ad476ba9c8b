"""The pass: Algorithm 1 as a generator of trials.

The generator decides, and nothing else: whoever iterates over it stores trials, shows progress, cancels by stopping, and
resumes by handing back what was stored. A trial that is handed back is not evaluated again; its verdict is taken as it
stands, and the pass goes on at the next element exactly as if it had never stopped. Where a pass has a goal it ends with the
trial that reaches it, which is a matter of the plan alone.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from torch import Tensor

from axformer.config import HelpedReference, PassConfig
from axformer.errors import CheckpointError, PlanError
from axformer.evaluation.base import Evaluator
from axformer.evaluation.guard import Guard
from axformer.evaluation.screen import Screen
from axformer.methods.axformer.acceptance import Rule, decided, verdict_of_kept
from axformer.methods.axformer.metric_limit import MetricLimit
from axformer.methods.axformer.ordering import inspection_order
from axformer.methods.axformer.progress import parts_of
from axformer.methods.axformer.safeguards import safeguard_of
from axformer.methods.axformer.tally import Tally
from axformer.plan.elements import Dimensions, Element, ElementKind, hard_attention, parse
from axformer.plan.plan import Plan
from axformer.plan.trial import Phase, Trial, Verdict

_PHASES = {
    ElementKind.LAYER: Phase.LAYER,
    ElementKind.ATTENTION: Phase.BLOCK,
    ElementKind.FFN: Phase.BLOCK,
    ElementKind.HEAD: Phase.HEAD,
    ElementKind.NEURONS: Phase.NEURONS,
    ElementKind.HARD_ATTENTION: Phase.HARD_ATTENTION,
}


def search(
    evaluator: Evaluator,
    dimensions: Dimensions,
    config: PassConfig,
    *,
    parameters_left: Callable[[Plan], int],
    is_enough: Callable[[Plan], bool] = lambda _: False,
    screen: Screen | None = None,
    metric_limit: MetricLimit | None = None,
    replay: Sequence[Trial] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Trial]:
    """Run a pass (Algorithm 1).

    Args:
        evaluator: measures losses; knows the model and the validation set.
        dimensions: of the model.
        config: the knobs.
        parameters_left: counts the parameters that a plan leaves.
        is_enough: whether the pass may stop at a plan; asked of each that is accepted.
        screen: decides what is far from every line, in low precision; null where the evaluator decides all.
        metric_limit: what a trade must keep, with its recording as the evaluator's task; null where the loss is all.
        replay: the first trials of the same pass, as it yielded them before it was stopped.
        clock: seconds, from any start.

    Yields:
        Every trial in order, the replayed ones included.

    Raises:
        CheckpointError: the loss of the untouched model is not a finite number.
        ConfigError: the safeguard asks for more folds than there are samples.
        PlanError: the replayed trials are not those of this pass.
    """
    running = _Pass(evaluator, dimensions, config, parameters_left, screen, metric_limit, replay, clock)
    for trial in running.trials():
        yield trial
        if trial.verdict is Verdict.ACCEPT and is_enough(running.plan):
            return


def plan_of(trials: Iterable[Trial], dimensions: Dimensions, config: PassConfig) -> Plan:
    """The plan that a trace leads to: everything accepted in it, carried out in order."""
    plan = Plan.full(dimensions)
    for trial in trials:
        if trial.verdict is Verdict.ACCEPT:
            assert trial.element is not None, "only elements are accepted"
            plan = plan.apply(parse(trial.element), top_k=config.attention_top_k)
    return plan


@dataclass
class _Refinement:
    """An element whose parts are being tried."""

    element: Element
    before: Plan | None
    """The plan before the one that it was tried on; null where nothing had been accepted."""
    plan: Plan
    """The plan that it was tried on."""
    precision: str
    """That it was measured in."""
    losses: Tensor | None
    """With it removed; null after a replay, until they are measured again."""


class _Pass:
    """The state of a pass: the plan, its loss, and what samples are compared with."""

    def __init__(
        self,
        evaluator: Evaluator,
        dimensions: Dimensions,
        config: PassConfig,
        parameters_left: Callable[[Plan], int],
        screen: Screen | None,
        metric_limit: MetricLimit | None,
        replay: Sequence[Trial],
        clock: Callable[[], float],
    ) -> None:
        self._evaluator = evaluator
        self._dimensions = dimensions
        self._config = config
        self._parameters_left = lru_cache(maxsize=2)(parameters_left)  # of the plan as it is, every trial asks
        self._screen = screen
        self._metric_limit = metric_limit
        self._replay = list(replay)
        self._clock = clock
        self._started = clock() - (replay[-1].seconds if replay else 0.0)
        self._total = evaluator.total
        self._plan = Plan.full(dimensions)
        self._before: Plan | None = None
        self._base_loss = math.inf
        self._min_loss = math.inf
        self._is_safe = safeguard_of(config, dimensions, self._total)
        self._reference: Tensor | None = None
        self._current: Tensor | None = None
        """The losses of the plan as it is; null after a replay, until they are measured again."""
        self._untouched: Tensor | None = None
        """The losses of the untouched model; null after a replay, until they are measured again."""
        self._guard: Guard | None = None
        """Of the trial in low precision of a block and of all that stands in it."""
        self._refinements: list[_Refinement] = []
        """Those that are going on, from the outermost to the innermost."""
        self._share: float | None = None
        """What this round of the trade may spend of the tolerance; null until the gains are taken."""
        self._seq = 0

    @property
    def plan(self) -> Plan:
        """What has been accepted so far."""
        return self._plan

    @property
    def _is_trading(self) -> bool:
        """Whether the gains are taken, and loss is traded for size."""
        return self._share is not None

    def trials(self) -> Iterator[Trial]:
        """All trials, to the last element."""
        yield self._base()
        if self._config.hard_attention:
            for layer in range(self._dimensions.layers):
                yield self._try(hard_attention(layer))[0]
        yield from self._inspect_all()
        for share in self._config.trade_shares:
            self._share = share
            yield from self._inspect_all()

    def _inspect_all(self) -> Iterator[Trial]:
        """Go over all blocks, or what is left of them."""
        for element in inspection_order(self._dimensions, self._config):
            if self._plan.holds(element):
                yield from self._inspect(element)

    def _inspect(self, element: Element) -> Iterator[Trial]:
        before, plan = self._before, self._plan
        trial, losses = self._try(element)
        yield trial
        if trial.verdict is Verdict.REFINE:
            self._refinements.append(_Refinement(element, before, plan, trial.precision, losses))
            for part in self._parts_of(element):
                yield from self._inspect(part)
            self._refinements.pop()

    def _parts_of(self, element: Element) -> list[Element]:
        """Those that are left."""
        return [part for part in parts_of(element, self._dimensions, self._config) if self._plan.holds(part)]

    def _base(self) -> Trial:
        trial = self._next_replayed(None)
        if trial is None:
            tally = Tally(self._total, None, ties_help=False)
            for part in self._evaluator.parts(self._plan):
                tally.add(part)
            trial = self._record(Phase.BASE, None, tally, Verdict.BASE, 0, self._evaluator.precision)
            if not math.isfinite(trial.loss):
                raise CheckpointError(
                    f"the model's loss on the validation set is {trial.loss}; check its weights and labels"
                )
            self._reference = self._current = tally.losses
            self._see_untouched(tally.losses)
        self._base_loss = self._min_loss = trial.loss
        return trial

    def _try(self, element: Element) -> tuple[Trial, Tensor | None]:
        """A trial and its losses, which are null where it is replayed."""
        plan = self._plan.apply(element, top_k=self._config.attention_top_k)
        trial, losses = self._next_replayed(element), None
        if trial is None:
            self._catch_up()
            self._see_hurt_first()
            trial, losses = self._evaluate(element, plan)
        if trial.verdict is Verdict.ACCEPT:
            self._before, self._plan = self._plan, plan
            self._min_loss = min(self._min_loss, trial.loss)
            if losses is not None:
                self._accept(plan)
                self._see(losses)
        return trial, losses

    def _evaluate(self, element: Element, plan: Plan) -> tuple[Trial, Tensor]:
        rule = self._rule(element)
        tally, precision = self._screened(plan, rule), "" if self._screen is None else self._screen.precision
        if tally is None:
            tally, precision = self._measured(self._evaluator, plan, rule, None), self._evaluator.precision
        verdict = decided(tally.bounds, rule)
        assert verdict is not None, "a trial that is measured to the end is decided"
        if verdict is Verdict.ACCEPT and not self._withstands(tally.losses):
            verdict = verdict_of_kept(tally.loss, rule)
        removed = self._parameters_left(self._plan) - self._parameters_left(plan)
        phase = Phase.TRADE if self._is_trading else _PHASES[element.kind]
        return self._record(phase, element.id, tally, verdict, removed, precision), tally.losses

    def _withstands(self, losses: Tensor) -> bool:
        """Whether a change with these losses may be accepted, measured to the end as whatever is accepted.

        A gain must be one for the safeguard. A trade is none, and is not asked to be one: it must keep the metric.
        """
        if self._share is not None:
            return self._metric_limit is None or self._metric_limit.allows(losses, self._share)
        if self._is_safe is None:
            return True
        assert self._current is not None, "it is measured again after a replay"
        return self._is_safe(self._current.double() - losses.double())

    def _screened(self, plan: Plan, rule: Rule) -> Tally | None:
        """What low precision says of a plan, where it says enough; it never accepts."""
        if self._screen is None:
            return None
        if not self._refinements:
            self._guard = self._screen.guard(plan)
        tally = self._measured(self._screen, plan, rule, self._guard)
        is_decided = math.isfinite(tally.loss) and decided(tally.bounds, rule) in (Verdict.REJECT, Verdict.REFINE)
        return tally if is_decided else None

    def _measured(self, evaluator: Evaluator, plan: Plan, rule: Rule, guard: Guard | None) -> Tally:
        """Evaluate a plan until its verdict is known, or to the end where that is asked for."""
        tally = Tally(self._total, self._reference, ties_help=self._config.ties_help, guard=guard)
        for part in evaluator.parts(plan):
            tally.add(part)
            if self._config.early_decision and decided(tally.bounds, rule) is not None:
                break
        return tally

    def _rule(self, element: Element) -> Rule:
        is_coarse = element.kind in (ElementKind.LAYER, ElementKind.ATTENTION, ElementKind.FFN)
        return Rule(
            min_loss=self._min_loss,
            total=self._total,
            majority_fraction=None if self._is_trading else self._config.majority_fraction,
            loss_margin=self._config.coarse_margin if is_coarse else 1.0,
            refine_margin=self._config.refine_margin if self._parts_of(element) else None,
            budget=self._budget(element),
        )

    def _budget(self, element: Element) -> float | None:
        """The loss that a removal may come to; hard attention removes nothing, so nothing is spent on it."""
        if self._share is not None and self._config.tolerance is not None:
            return (1 + self._share * self._config.tolerance) * self._base_loss
        share = self._config.loss_budget
        return None if share is None or element.kind is ElementKind.HARD_ATTENTION else share * self._base_loss

    def _see(self, losses: Tensor) -> None:
        """Learn the losses of the plan as it is now."""
        self._current = losses
        if self._reference is None or self._config.helped_reference is HelpedReference.CURRENT:
            self._reference = losses

    def _see_untouched(self, losses: Tensor) -> None:
        """Learn the losses of the untouched model, which was measured just now."""
        self._untouched = losses
        if self._metric_limit is not None:
            self._metric_limit.begin(losses)

    def _catch_up(self) -> None:
        """After a replay: measure once more what the trials to come are compared with.

        The losses of the plan are measured as in the trial that was accepted last, on top of the plan before it, so that they
        are the same to the last bit.
        """
        if self._reference is not None:
            return
        untouched = self._evaluator.losses(Plan.full(self._dimensions))
        self._see_untouched(untouched)
        if self._config.helped_reference is HelpedReference.ORIGINAL:
            self._reference = untouched
        for refinement in self._refinements:
            self._measure_again(refinement)
        self._see(self._stand_at(self._before, self._plan))

    def _stand_at(self, before: Plan | None, plan: Plan) -> Tensor:
        """Bring the evaluators to a plan as if its trial had just been accepted, and give its losses."""
        if before is not None:
            self._accept(before)
        losses = self._evaluator.losses(plan)
        self._accept(plan)
        return losses

    def _measure_again(self, refinement: _Refinement) -> None:
        """After a replay: what the order of the samples goes by, and the guard."""
        self._stand_at(refinement.before, refinement.plan)
        plan, asked = refinement.plan.apply(refinement.element, top_k=self._config.attention_top_k), self._evaluator
        if self._screen is not None:
            if refinement is self._refinements[0]:
                self._guard = self._screen.guard(plan)
            if refinement.precision == self._screen.precision:
                asked = self._screen
        refinement.losses = asked.losses(plan)

    def _see_hurt_first(self) -> None:
        """Let the trial of a part begin with samples that were hurt when the whole was tried: it is decided sooner then."""
        hurt = None
        if self._refinements:
            losses = self._refinements[-1].losses
            assert losses is not None, "they are measured again after a replay"
            assert self._untouched is not None, "the same"
            hurt = losses > self._untouched
        self._evaluator.see_first(hurt)

    def _accept(self, plan: Plan) -> None:
        self._evaluator.accept(plan)
        if self._screen is not None:
            self._screen.accept(plan)

    def _next_replayed(self, element: Element | None) -> Trial | None:
        if self._seq >= len(self._replay):
            return None
        trial = self._replay[self._seq]
        expected = element.id if element else None
        if trial.element != expected or trial.seq != self._seq:
            raise PlanError(
                f"the stored trace is not one of this pass: its trial {self._seq} is {trial.element}, not {expected}"
            )
        self._seq += 1
        return trial

    def _record(
        self, phase: Phase, element: str | None, tally: Tally, verdict: Verdict, parameters: int, precision: str
    ) -> Trial:
        trial = Trial(
            seq=self._seq,
            phase=phase,
            element=element,
            loss=tally.loss,
            loss_is_bound=not tally.is_complete,
            loss_band=tally.band,
            helped=None if phase is Phase.BASE else tally.helped,
            samples=tally.seen,
            total=self._total,
            min_loss=tally.loss if phase is Phase.BASE else self._min_loss,
            verdict=verdict,
            precision=precision,
            parameters=parameters,
            seconds=self._clock() - self._started,
        )
        self._seq += 1
        return trial

"""The pass: Algorithm 1 as a generator of trials.

The generator decides, and nothing else: whoever iterates over it stores trials, shows progress, cancels by stopping, and
resumes by handing back what was stored. A trial that is handed back is not evaluated again; its verdict is taken as it
stands, and the pass goes on at the next element exactly as if it had never stopped.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from torch import Tensor

from axformer.acceptance import Rule, decided
from axformer.config import HelpedReference, PassConfig
from axformer.elements import Dimensions, Element, ElementKind, hard_attention, parse
from axformer.errors import CheckpointError, PlanError
from axformer.evaluation.base import Evaluator
from axformer.evaluation.screen import Screen
from axformer.guard import Guard
from axformer.ordering import inspection_order
from axformer.plan import Plan
from axformer.progress import parts_of
from axformer.tally import Tally
from axformer.trial import Phase, Trial, Verdict

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
    screen: Screen | None = None,
    replay: Sequence[Trial] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Trial]:
    """Run a pass (Algorithm 1).

    Args:
        evaluator: measures losses; knows the model and the validation set.
        dimensions: of the model.
        config: the knobs.
        parameters_left: counts the parameters that a plan leaves.
        screen: decides what is far from every line, in low precision; null where the evaluator decides all.
        replay: the first trials of the same pass, as it yielded them before it was stopped.
        clock: seconds, from any start.

    Yields:
        Every trial in order, the replayed ones included.

    Raises:
        CheckpointError: the loss of the untouched model is not a finite number.
        PlanError: the replayed trials are not those of this pass.
    """
    yield from _Pass(evaluator, dimensions, config, parameters_left, screen, replay, clock).trials()


def plan_of(trials: Iterable[Trial], dimensions: Dimensions, config: PassConfig) -> Plan:
    """The plan that a trace leads to: everything accepted in it, carried out in order."""
    plan = Plan.full(dimensions)
    for trial in trials:
        if trial.verdict is Verdict.ACCEPT:
            assert trial.element is not None, "only elements are accepted"
            plan = plan.apply(parse(trial.element), top_k=config.attention_top_k)
    return plan


class _Pass:
    """The state of a pass: the plan, its loss, and what samples are compared with."""

    def __init__(
        self,
        evaluator: Evaluator,
        dimensions: Dimensions,
        config: PassConfig,
        parameters_left: Callable[[Plan], int],
        screen: Screen | None,
        replay: Sequence[Trial],
        clock: Callable[[], float],
    ) -> None:
        self._evaluator = evaluator
        self._dimensions = dimensions
        self._config = config
        self._parameters_left = parameters_left
        self._screen = screen
        self._replay = list(replay)
        self._clock = clock
        self._started = clock() - (replay[-1].seconds if replay else 0.0)
        self._total = evaluator.total
        self._plan = Plan.full(dimensions)
        self._before: Plan | None = None
        self._min_loss = math.inf
        self._reference: Tensor | None = None
        self._seq = 0

    def trials(self) -> Iterator[Trial]:
        yield self._base()
        if self._config.hard_attention:
            for layer in range(self._dimensions.layers):
                yield self._try(hard_attention(layer))
        for element in inspection_order(self._dimensions, self._config):
            yield from self._inspect(element)

    def _inspect(self, element: Element) -> Iterator[Trial]:
        trial = self._try(element)
        yield trial
        if trial.verdict is Verdict.REFINE:
            for part in self._parts_of(element):
                yield from self._inspect(part)

    def _parts_of(self, element: Element) -> list[Element]:
        return parts_of(element, self._dimensions, self._config)

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
            self._reference = tally.losses
        self._min_loss = trial.loss
        return trial

    def _try(self, element: Element) -> Trial:
        plan = self._plan.apply(element, top_k=self._config.attention_top_k)
        trial, losses = self._next_replayed(element), None
        if trial is None:
            self._catch_up()
            trial, losses = self._evaluate(element, plan)
        if trial.verdict is Verdict.ACCEPT:
            self._before, self._plan = self._plan, plan
            self._min_loss = trial.loss
            if losses is not None:
                self._accept(plan)
                self._see(losses)
        return trial

    def _evaluate(self, element: Element, plan: Plan) -> tuple[Trial, Tensor]:
        rule = self._rule(element)
        tally, precision = self._screened(plan, rule), "" if self._screen is None else self._screen.precision
        if tally is None:
            tally, precision = self._measured(self._evaluator, plan, rule, None), self._evaluator.precision
        verdict = decided(tally.bounds, rule)
        assert verdict is not None, "a trial that is measured to the end is decided"
        removed = self._parameters_left(self._plan) - self._parameters_left(plan)
        return self._record(_PHASES[element.kind], element.id, tally, verdict, removed, precision), tally.losses

    def _screened(self, plan: Plan, rule: Rule) -> Tally | None:
        """What low precision says of a plan, where it says enough; it never accepts."""
        if self._screen is None:
            return None
        tally = self._measured(self._screen, plan, rule, self._screen.guard(plan))
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
            majority_fraction=self._config.majority_fraction,
            loss_margin=self._config.coarse_margin if is_coarse else 1.0,
            refine_margin=self._config.refine_margin if self._parts_of(element) else None,
        )

    def _see(self, losses: Tensor) -> None:
        """Learn the losses of the plan as it is now."""
        if self._reference is None or self._config.helped_reference is HelpedReference.CURRENT:
            self._reference = losses

    def _catch_up(self) -> None:
        """After a replay: measure once more what the trials to come are compared with.

        The losses of the plan are measured as in the trial that was accepted last, on top of the plan before it, so that they
        are the same to the last bit.
        """
        if self._reference is not None:
            return
        if self._config.helped_reference is HelpedReference.ORIGINAL:
            self._see(self._evaluator.losses(Plan.full(self._dimensions)))
        if self._before is not None:
            self._accept(self._before)
        self._see(self._evaluator.losses(self._plan))
        self._accept(self._plan)

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

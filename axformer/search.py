"""The pass: Algorithm 1 as a generator of trials.

The generator decides, and nothing else: whoever iterates over it stores trials, shows progress, cancels by stopping, and
resumes by handing back what was stored. A trial that is handed back is not evaluated again; its verdict is taken as it
stands, and the pass goes on at the next element exactly as if it had never stopped.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from torch import Tensor

from axformer.acceptance import accepted, verdict_of, worth_refining
from axformer.config import HelpedReference, PassConfig
from axformer.elements import Dimensions, Element, ElementKind, hard_attention, parse
from axformer.errors import CheckpointError, PlanError
from axformer.evaluation.base import Evaluator
from axformer.ordering import inspection_order
from axformer.plan import Plan
from axformer.progress import parts_of
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
    replay: Sequence[Trial] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Trial]:
    """Run a pass (Algorithm 1).

    Args:
        evaluator: measures losses; knows the model and the validation set.
        dimensions: of the model.
        config: the knobs.
        parameters_left: counts the parameters that a plan leaves.
        replay: the first trials of the same pass, as it yielded them before it was stopped.
        clock: seconds, from any start.

    Yields:
        Every trial in order, the replayed ones included.

    Raises:
        CheckpointError: the loss of the untouched model is not a finite number.
        PlanError: the replayed trials are not those of this pass.
    """
    yield from _Pass(evaluator, dimensions, config, parameters_left, replay, clock).trials()


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
        replay: Sequence[Trial],
        clock: Callable[[], float],
    ) -> None:
        self._evaluator = evaluator
        self._dimensions = dimensions
        self._config = config
        self._parameters_left = parameters_left
        self._replay = list(replay)
        self._clock = clock
        self._started = clock() - (replay[-1].seconds if replay else 0.0)
        self._plan = Plan.full(dimensions)
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
            for part in parts_of(element, self._dimensions, self._config):
                yield from self._inspect(part)

    def _base(self) -> Trial:
        trial = self._next_replayed(None)
        if trial is None:
            self._reference = self._evaluator.losses(self._plan)
            self._min_loss = self._reference.mean().item()
            if not math.isfinite(self._min_loss):
                raise CheckpointError(
                    f"the model's loss on the validation set is {self._min_loss}; check its weights and labels"
                )
            trial = self._record(Phase.BASE, None, self._reference, None, Verdict.BASE, 0)
        self._min_loss = trial.loss
        return trial

    def _try(self, element: Element) -> Trial:
        plan = self._plan.apply(element, top_k=self._config.attention_top_k)
        losses: Tensor | None = None
        trial = self._next_replayed(element)
        if trial is None:
            trial, losses = self._evaluate(element, plan)
        if trial.verdict is Verdict.ACCEPT:
            self._evaluator.accept(plan)
            self._plan = plan
            self._min_loss = trial.loss
            if self._config.helped_reference is HelpedReference.CURRENT:
                self._reference = losses
        return trial

    def _evaluate(self, element: Element, plan: Plan) -> tuple[Trial, Tensor]:
        reference = self._reference_losses()
        losses = self._evaluator.losses(plan)
        helped = int((losses <= reference).sum() if self._config.ties_help else (losses < reference).sum())
        verdict = self._decide(element, losses.mean().item(), helped, len(losses))
        removed = self._parameters_left(self._plan) - self._parameters_left(plan)
        return self._record(_PHASES[element.kind], element.id, losses, helped, verdict, removed), losses

    def _decide(self, element: Element, loss: float, helped: int, total: int) -> Verdict:
        coarse = element.kind in (ElementKind.LAYER, ElementKind.ATTENTION, ElementKind.FFN)
        is_accepted = accepted(
            loss,
            self._min_loss,
            helped,
            total,
            majority_fraction=self._config.majority_fraction,
            loss_margin=self._config.coarse_margin if coarse else 1.0,
        )
        is_refined = coarse and worth_refining(loss, self._min_loss, refine_margin=self._config.refine_margin)
        return verdict_of(is_accepted=is_accepted, is_refined=is_refined)

    def _reference_losses(self) -> Tensor:
        """Losses that samples are compared with; after a replay they are measured once more."""
        if self._reference is None:
            current = self._config.helped_reference is HelpedReference.CURRENT
            plan = self._plan if current else Plan.full(self._dimensions)
            self._reference = self._evaluator.losses(plan)
        return self._reference

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
        self, phase: Phase, element: str | None, losses: Tensor, helped: int | None, verdict: Verdict, parameters: int
    ) -> Trial:
        trial = Trial(
            seq=self._seq,
            phase=phase,
            element=element,
            loss=losses.mean().item(),
            loss_is_bound=False,
            helped=helped,
            samples=len(losses),
            total=len(losses),
            min_loss=self._min_loss,
            verdict=verdict,
            precision=self._evaluator.precision,
            parameters=parameters,
            seconds=self._clock() - self._started,
        )
        self._seq += 1
        return trial

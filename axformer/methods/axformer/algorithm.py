"""The pass: Algorithm 1 of the AxFormer paper as a generator of trials, line for line.

The generator only decides. The caller stores trials, shows progress, cancels by no longer iterating, and resumes by passing the
stored trials. Stored trials are not evaluated again (:class:`axformer.methods.base.Replay`); the pass continues with the next
element exactly as if it had never stopped (:class:`axformer.methods.axformer.state.PassState`).

Two things are not in the paper: the trade of loss for size after the gains (``tolerance``), and targets at which a pass stops.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from axformer.config import PassConfig
from axformer.errors import CheckpointError
from axformer.evaluation.base import Evaluator
from axformer.methods.axformer.judge import Judge, Judged, MetricLimit, safeguard_of, tries_hard_attention
from axformer.methods.axformer.ordering import inspection_order
from axformer.methods.axformer.progress import parts_of
from axformer.methods.axformer.state import PassState, Refinement
from axformer.methods.base import Replay
from axformer.plan.elements import Dimensions, Element, ElementKind, hard_attention
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
    metric_limit: MetricLimit | None = None,
    ranked_groups: Callable[[int], list[Element]] | None = None,
    importance: Mapping[Element, float] | None = None,
    replay: Sequence[Trial] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Trial]:
    """Run a pass (Algorithm 1).

    Args:
        evaluator: measures the losses of plans on the validation set.
        dimensions: the model's dimensions.
        config: the knobs.
        parameters_left: counts the parameters that a plan leaves.
        is_enough: whether the pass may stop at a plan; called with each accepted plan.
        metric_limit: the limit of a trade on the metric; its recording is the evaluator's task. None to limit the loss only.
        ranked_groups: returns the groups of neurons of a layer; None for groups of neighbouring neurons.
        importance: of every block by its number, for ``order=importance``.
        replay: the first trials of the same pass, as yielded before it stopped.
        clock: seconds since any fixed start.

    Yields:
        Every trial in order, including the replayed ones.

    Raises:
        CheckpointError: the loss of the untouched model is not finite.
        ConfigError: the safeguard needs more inputs than there are.
        PlanError: the replayed trials do not belong to this pass.
    """
    on_base = (lambda _: None) if metric_limit is None else metric_limit.begin
    state = PassState(evaluator, dimensions, config.variant.helped_reference, on_base)
    judge = Judge(evaluator, config, safeguard_of(config, evaluator.samples), metric_limit)
    queue = inspection_order(dimensions, config, importance)  # 8: Q = Order_elements_for_inspection(T, D)
    counted = lru_cache(maxsize=2)(parameters_left)  # every trial needs the current plan's
    stored = Replay(replay)
    started = clock() - stored.seconds
    tries_hard = tries_hard_attention(evaluator.samples, config)
    running = _Pass(state, judge, dimensions, config, queue, tries_hard, counted, ranked_groups, stored, clock, started)
    for trial in running.trials():
        yield trial
        if trial.verdict is Verdict.ACCEPT and is_enough(state.plan):
            return


@dataclass
class _Pass:
    """Algorithm 1. The numbers are the paper's lines."""

    _state: PassState
    _judge: Judge
    _dimensions: Dimensions
    _config: PassConfig
    _queue: Sequence[Element]
    _tries_hard: bool
    _parameters_left: Callable[[Plan], int]
    _ranked_groups: Callable[[int], list[Element]] | None
    _replay: Replay
    _clock: Callable[[], float]
    _started: float

    def trials(self) -> Iterator[Trial]:
        """Yield all trials, up to the last element."""
        yield self._measure_base()  # 7: Min_Loss = Evaluate(T, D)
        if self._config.attention_top_k is not None:
            for layer in range(self._dimensions.layers):  # 9: for each layer L in T do
                element = hard_attention(layer)
                if self._tries_hard or self._replay.is_at(element.id):  # earlier versions always tried it
                    yield self._analyze(element)[0]  # 10-15: analyzed like an element
        yield from self._inspect_all(self._queue)  # 16-25
        for share in self._config.trade_shares:  # not in the paper: inspect what is left again
            self._judge.trade_share = share
            yield from self._inspect_all(self._queue)

    def _inspect_all(self, queue: Sequence[Element]) -> Iterator[Trial]:
        for element in queue:  # 16: while Q is not empty do; 17: TrialElement = Q.pop()
            if self._is_there(element):
                yield from self._inspect(element)

    def _inspect(self, element: Element) -> Iterator[Trial]:
        trial, refinement = self._analyze(element)  # 18: analyze_element(TrialElement)
        yield trial
        if refinement is not None:  # 19: if it has not been pruned and New_Loss < 1.1 x Min_Loss then
            with self._state.refining(refinement):
                for part in self._parts_of(element):  # 20-25: for each head, or neuron, in it do analyze it
                    yield from self._inspect(part)

    def _analyze(self, element: Element) -> tuple[Trial, Refinement | None]:  # 1: Function analyze_element (element E)
        state = self._state
        config = self._config
        pruned = state.plan.apply(
            element, top_k=config.attention_top_k, keeps_bias=config.needs.fitting
        )  # 2: T_pruned = T - E
        trial, losses = self._replay.next(element.id), None
        if trial is None:
            state.prepare()
            judged = self._judge.judge(element, pruned, state, has_parts=bool(self._parts_of(element)))  # 3, 4, 19
            trial, losses = self._record(element, judged, pruned), judged.tally.losses
        if trial.verdict is Verdict.ACCEPT:  # 4: if New_Loss < Min_Loss and num_samples_helped > 0.5 x cardinality(D)
            state.accept(pruned, trial.loss, losses)  # 5: Min_Loss = New_Loss; 6: T = T_pruned
        if trial.verdict is Verdict.REFINE:
            return trial, state.refinement(pruned, losses)
        return trial, None

    def _parts_of(self, element: Element) -> list[Element]:
        """The parts of an element that are left."""
        if element.kind is ElementKind.FFN and self._ranked_groups is not None:
            parts = self._ranked_groups(element.layer)
        else:
            parts = parts_of(element, self._dimensions, self._config)
        return [part for part in parts if self._is_there(part)]

    def _is_there(self, element: Element) -> bool:
        return self._state.plan.holds(element, keeps_bias=self._config.needs.fitting)

    def _measure_base(self) -> Trial:
        trial, losses = self._replay.next(None), None
        if trial is None:
            judged = self._judge.base(self._state.plan)
            trial, losses = self._record(None, judged, self._state.plan), judged.tally.losses
            if not math.isfinite(trial.loss):
                raise CheckpointError(
                    f"the model's loss on the validation set is {trial.loss}; check its weights and labels"
                )
        self._state.begin(trial.loss, losses)
        return trial

    def _record(self, element: Element | None, judged: Judged, plan: Plan) -> Trial:
        tally, is_trade = judged.tally, self._judge.trade_share is not None
        trial = Trial(
            seq=self._replay.seq,
            phase=Phase.BASE if element is None else Phase.TRADE if is_trade else _PHASES[element.kind],
            element=None if element is None else element.id,
            loss=tally.loss,
            loss_is_bound=not tally.is_complete,
            helped=None if element is None else tally.helped,
            samples=tally.seen,
            total=tally.total,
            min_loss=tally.loss if element is None else self._state.min_loss,
            verdict=judged.verdict,
            parameters=self._parameters_left(self._state.plan) - self._parameters_left(plan),
            seconds=self._clock() - self._started,
            frequency=judged.frequency,
        )
        self._replay.seq += 1
        return trial

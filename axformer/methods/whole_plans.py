"""What methods share whose trials hold whole plans: the untouched model's trial, the records, and the replay."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from axformer.errors import CheckpointError, PlanError
from axformer.methods.base import Ground, Replay
from axformer.plan.plan import Plan
from axformer.plan.trial import ModelFigures, Phase, Trial, Verdict
from axformer.scores.confidence import rising_metric
from axformer.scores.measured import Measured, measure


class WholePlans:
    """The trials of one run, each of a whole plan."""

    def __init__(self, ground: Ground, replay: Replay, phase: Phase) -> None:
        """Begin a run, whose trials but the first are of one phase."""
        self._ground = ground
        self._replay = replay
        self._phase = phase
        self._started = ground.surroundings.clock() - replay.seconds
        self._full = Plan.full(ground.dimensions)
        self._min_loss = float("inf")
        self._seen: tuple[Plan, Measured] | None = None
        """The plan that was measured last, and its model on the deciding rows."""

    def base(self, opening: Callable[[], Mapping[str, Any]] = dict) -> Trial:
        """The trial of the untouched model.

        Args:
            opening: what comes before it in a run that was not stopped; returns further fields of the trial.

        Raises:
            CheckpointError: its loss is not finite.
        """
        trial = self._replay.next(None)
        if trial is None:
            trial = self._record(None, self._full, self.untouched, Verdict.BASE, opening())
            if not trial.loss < float("inf"):
                raise CheckpointError(
                    f"the model's loss on the validation set is {trial.loss}; check its weights and labels"
                )
        self._min_loss = trial.loss
        return trial

    def stored(self, element: str) -> Trial | None:
        """The stored trial of a plan; None if the plan was not tried before the run was stopped.

        Raises:
            PlanError: the stored trial has no plan, so it is not of this run.
        """
        trial = self._replay.next(element)
        if trial is not None:
            if trial.plan is None:
                raise PlanError(f"the stored trace is not one of this run: its trial {trial.seq} has no plan")
            self._min_loss = min(self._min_loss, trial.loss)
        return trial

    def is_left_out(self, element: str) -> bool:
        """Whether the stored trials go on with another plan, so that this one was not tried."""
        upcoming = self._replay.upcoming
        return upcoming is not None and upcoming.element != element

    @property
    def is_resumed(self) -> bool:
        """Whether a stored trial comes next."""
        return self._replay.upcoming is not None

    def measured(self, plan: Plan) -> Measured:
        """The model of a plan on the deciding rows, built and measured once in a row."""
        if self._seen is None or self._seen[0] != plan:
            ground = self._ground
            self._seen = plan, measure(ground.model_of(plan), ground.checkpoint.task, ground.samples)
        return self._seen[1]

    def tried(
        self,
        element: str,
        plan: Plan,
        judge: Callable[[Measured], Verdict] = lambda _: Verdict.ACCEPT,
        more: Mapping[str, Any] | None = None,
    ) -> Trial:
        """The trial of a plan: its model is built and measured, unless it just was. One whose loss is not finite is rejected
        unseen, as after a training that diverged.

        Args:
            element: the plan's id.
            judge: decides on the model as it was measured on the deciding rows.
            more: further fields of the trial.
        """
        measured = self.measured(plan)
        verdict = judge(measured) if measured.losses.isfinite().all() else Verdict.REJECT
        trial = self._record(element, plan, measured, verdict, more or {})
        self._min_loss = min(self._min_loss, trial.loss)
        return trial

    def end(self) -> None:
        """Check that every stored trial belongs to this run.

        Raises:
            PlanError: a stored trial does not.
        """
        stored = self._replay.upcoming
        if stored is not None:
            raise PlanError(
                f"the stored trace is not one of this run: its trial {stored.seq} is {stored.element}, which it does not try"
            )

    @property
    def untouched(self) -> Measured:
        """The untouched model on the deciding rows."""
        return self._ground.untouched.measured(keep=False)

    def metric(self, measured: Measured) -> float:
        """The task's first metric of which more is better."""
        return measured.figures[rising_metric(measured.figures)]

    def _model_figures(self, plan: Plan, measured: Measured) -> ModelFigures:
        targets = self._ground.targets
        return ModelFigures(
            metrics={name: value for name, value in measured.figures.items() if isfinite(value)},
            parameters=targets.parameters(plan),
            encoder_parameters=targets.encoder_parameters(plan),
            operations=targets.operations(plan),
            encoder_operations=targets.encoder_operations(plan),
        )

    def _record(
        self, element: str | None, plan: Plan, measured: Measured, verdict: Verdict, more: Mapping[str, Any]
    ) -> Trial:
        ground, is_base, losses = self._ground, element is None, measured.losses
        loss, targets, voters = losses.mean().item(), ground.targets, ground.samples.voters
        trial = Trial(
            seq=self._replay.seq,
            phase=Phase.BASE if is_base else self._phase,
            element=element,
            loss=loss,
            loss_is_bound=False,
            helped=None if is_base else int((losses < self.untouched.losses)[voters].sum()),
            samples=int(voters.sum()),
            total=int(voters.sum()),
            min_loss=loss if is_base else self._min_loss,
            verdict=verdict,
            parameters=targets.parameters(self._full) - targets.parameters(plan),
            seconds=ground.surroundings.clock() - self._started,
            plan=None if is_base else plan.layers,
            figures=self._model_figures(plan, measured),
            **more,
        )
        self._replay.seq += 1
        return trial

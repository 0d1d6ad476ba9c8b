"""Measures every plan to its end, with its best temperature and its metric, for the conditions that want them."""

from collections.abc import Iterator

import torch
from torch import Tensor

from axformer.evaluation.base import Evaluator, Part
from axformer.plan.plan import Plan
from axformer.scores.measured import Recording
from axformer.wire.metrics import first_metric


class Whole(Evaluator):
    """An evaluator whose losses are those at each plan's own best temperature, if the recording has losses at several."""

    def __init__(self, evaluator: Evaluator, recording: Recording, plan: Plan) -> None:
        """
        Args:
            evaluator: measures plans by the recording's losses.
            plan: the current plan.
        """
        self._evaluator = evaluator
        self._recording = recording
        self.samples = evaluator.samples
        self._plan = plan
        self._seen: dict[Plan, tuple[Tensor, float]] = {}
        """The losses and the metric of the current plan, and of the plan that was measured last."""

    def parts(self, plan: Plan) -> Iterator[Part]:
        if plan != self._plan or plan not in self._seen:  # what the evaluator remembers is not recorded again
            current = {self._plan: self._seen[self._plan]} if self._plan in self._seen else {}
            self._seen = current | {plan: self._measured(plan)}
        yield Part(torch.arange(len(self.samples)), self._seen[plan][0])

    def _measured(self, plan: Plan) -> tuple[Tensor, float]:
        losses = self._evaluator.losses(plan)
        figures = self._recording.measured(losses).figures
        if self._recording.curves is not None:
            losses = self._recording.curves.best()[0]
        return losses, figures[first_metric(figures)]

    def metric(self, plan: Plan) -> float:
        """The first metric of the current plan, or of the plan that was measured last."""
        return self._seen[plan][1]

    def accept(self, plan: Plan) -> None:
        self._evaluator.accept(plan)
        self._plan = plan

    def see_first(self, samples: Tensor | None) -> None:
        self._evaluator.see_first(samples)

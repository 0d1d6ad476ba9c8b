"""Evaluators of a validation set whose shards are measured by several processes."""

from collections.abc import Iterator

from torch import Tensor

from axformer.evaluation.base import Evaluator, Part, by_sample
from axformer.evaluation.processes import Processes
from axformer.evaluation.screen import Screen
from axformer.plan import Plan


class ShardedEvaluator(Evaluator):
    """See :class:`axformer.evaluation.base.Evaluator`."""

    precision = "float32"

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    @property
    def total(self) -> int:
        return len(self._processes.samples)

    def parts(self, plan: Plan) -> Iterator[Part]:
        return by_sample(self._processes.rows(plan, low=False), self._processes.samples)

    def accept(self, plan: Plan) -> None:
        self._processes.accept(plan)

    def see_first(self, samples: Tensor | None) -> None:
        self._processes.see_first(samples)


class ShardedScreen(Screen):
    """See :class:`axformer.evaluation.screen.Screen`."""

    def __init__(self, processes: Processes, precision: str) -> None:
        self._processes = processes
        self._precision = precision

    @property
    def precision(self) -> str:
        return self._precision

    @property
    def total(self) -> int:
        return len(self._processes.samples)

    def parts(self, plan: Plan) -> Iterator[Part]:
        return by_sample(self._processes.rows(plan, low=True), self._processes.samples)

    def pairs(self, plan: Plan) -> tuple[Tensor, Tensor]:
        return self._processes.pairs(plan)

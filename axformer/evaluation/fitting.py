"""What gives the weights that a plan keeps other values, as an evaluator sees it."""

from collections.abc import Iterator
from typing import Protocol

from torch import Tensor, nn

from axformer.evaluation.base import Evaluator, Part
from axformer.plan.plan import LayerPlan, Plan


class Fitting(Protocol):
    """Fits weights to a plan. They are a function of the plan alone, layer by layer."""

    def prepare(self, plan: Plan) -> None:
        """Compute the weights of a plan, with all cores."""

    def fit(self, index: int, layer: nn.Module, plan: LayerPlan) -> None:
        """Put the weights into a layer, by its number, that was cut as its plan says. Those of the plan were prepared."""


class FittedEvaluator(Evaluator):
    """Any evaluator, with the weights of each plan prepared before it is asked."""

    def __init__(self, evaluator: Evaluator, fitting: Fitting) -> None:
        self._evaluator = evaluator
        self._fitting = fitting

    @property
    def precision(self) -> str:
        return self._evaluator.precision

    @property
    def total(self) -> int:
        return self._evaluator.total

    def parts(self, plan: Plan) -> Iterator[Part]:
        self._fitting.prepare(plan)
        yield from self._evaluator.parts(plan)

    def accept(self, plan: Plan) -> None:
        self._evaluator.accept(plan)

    def see_first(self, samples: Tensor | None) -> None:
        self._evaluator.see_first(samples)

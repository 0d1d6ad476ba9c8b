"""The interface between evaluators and fits of the remaining weights."""

from collections.abc import Iterator
from typing import Protocol, Self

from torch import Tensor, nn

from axformer.evaluation.base import Evaluator, Part
from axformer.plan.plan import LayerPlan, Plan


class Fitting(Protocol):
    """Fits the remaining weights of a plan. The weights of a layer are a function of the layer's plan alone."""

    def prepare(self, plan: Plan) -> None:
        """Compute the weights of a plan, using all cores."""

    def fit(self, index: int, layer: nn.Module, plan: LayerPlan) -> None:
        """Put the weights into layer number ``index``, which was cut as in its plan. The plan must have been prepared."""


class FittedEvaluator(Evaluator):
    """Wraps any evaluator and prepares the weights of each plan before it is measured."""

    def __init__(self, evaluator: Evaluator, fitting: Fitting) -> None:
        self._evaluator = evaluator
        self._fitting = fitting

    def __enter__(self) -> Self:
        self._evaluator.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._evaluator.__exit__(*_)

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

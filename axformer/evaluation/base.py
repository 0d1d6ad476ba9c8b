"""The one question that a search asks of a model, so that slow and fast ways to answer it can stand in for each other."""

from typing import Protocol

from torch import Tensor

from axformer.plan import Plan


class Evaluator(Protocol):
    """Measures what a plan does to each validation sample."""

    @property
    def precision(self) -> str:
        """The arithmetic of its forward passes, for example ``float32``."""

    def losses(self, plan: Plan) -> Tensor:
        """The loss of each sample under a plan, in the order of the data, shape (samples,), float32, on the CPU."""

    def accept(self, plan: Plan) -> None:
        """Learn that all plans to come are this one with one more change."""

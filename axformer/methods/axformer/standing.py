"""Where a pass stands: the model as it is now, and the losses that the next trial is compared with.

After a replay these losses are not known; they are measured again on top of the same plans as before, so that they are the
same to the last bit.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor

from axformer.config import HelpedReference
from axformer.evaluation.base import Evaluator
from axformer.evaluation.guard import Guard
from axformer.evaluation.screen import Screen
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan


@dataclass
class Refinement:
    """An element whose parts are being tried."""

    before: Plan | None
    """The plan before the one that the element was tried on; None where nothing had been accepted."""
    plan: Plan
    """The plan that it was tried on."""
    removed: Plan
    """The same with the element removed."""
    precision: str
    """That it was measured in."""
    losses: Tensor | None
    """With it removed; None after a replay, until they are measured again."""


class Standing:
    """The plan, its least loss, and the losses of every sample under it."""

    def __init__(
        self,
        evaluator: Evaluator,
        screen: Screen | None,
        dimensions: Dimensions,
        helped_reference: HelpedReference,
        on_base: Callable[[Tensor], None],
    ) -> None:
        """
        Args:
            evaluator: measures losses.
            screen: measures them in low precision; None where there is none.
            dimensions: of the model.
            helped_reference: what a sample's loss is compared with.
            on_base: called with the losses of the untouched model just after it is measured.
        """
        self._evaluator = evaluator
        self._screen = screen
        self._helped_reference = helped_reference
        self._on_base = on_base
        self._full = Plan.full(dimensions)
        self._before: Plan | None = None
        self._refinements: list[Refinement] = []
        self._base: Tensor | None = None
        """The losses of the untouched model; None after a replay, until they are measured again. So are the two below."""
        self.current: Tensor | None = None
        """The losses of the plan as it is."""
        self.reference: Tensor | None = None
        """The losses that a sample's loss is compared with, to see whether it was helped."""
        self.guard: Guard | None = None
        """How far low precision may be off, on the trial of a block and of all that stands in it."""
        self.plan = self._full
        """What has been accepted so far."""
        self.base_loss = math.inf
        self.min_loss = math.inf
        """Min_Loss of Algorithm 1."""

    @property
    def is_refining(self) -> bool:
        """Whether parts of an element are being tried."""
        return bool(self._refinements)

    def begin(self, loss: float, losses: Tensor | None) -> None:
        """Learn the loss of the untouched model, and of each sample unless it is replayed."""
        self.base_loss = self.min_loss = loss
        if losses is not None:
            self.reference = self.current = losses
            self._see_base(losses)

    def accept(self, plan: Plan, loss: float, losses: Tensor | None) -> None:
        """Go on from a plan that was accepted, with the loss of each sample unless it is replayed."""
        self._before, self.plan = self.plan, plan
        self.min_loss = min(self.min_loss, loss)
        if losses is not None:
            self._accept(plan)
            self._see(losses)

    @contextmanager
    def refining(self, element: Refinement) -> Iterator[None]:
        """While the parts of an element are tried."""
        self._refinements.append(element)
        yield
        self._refinements.pop()

    def refinement(self, removed: Plan, precision: str, losses: Tensor | None) -> Refinement:
        """An element that was tried on the plan as it is, and is to be refined."""
        return Refinement(self._before, self.plan, removed, precision, losses)

    def prepare(self) -> None:
        """Get ready to measure a trial: after a replay measure again what it is compared with, and let it begin with the
        samples that were hurt when the element around it was tried, since it is decided sooner then."""
        self._catch_up()
        hurt = None
        if self._refinements:
            losses = self._refinements[-1].losses
            assert losses is not None, "they are measured again after a replay"
            assert self._base is not None, "the same"
            hurt = losses > self._base
        self._evaluator.see_first(hurt)

    def _catch_up(self) -> None:
        """After a replay: measure again the untouched model, the elements that are being refined, and the plan as it is, which
        is measured as in the trial that was accepted last, on top of the plan before it."""
        if self.reference is not None:
            return
        base = self._evaluator.losses(self._full)
        self._see_base(base)
        if self._helped_reference is HelpedReference.ORIGINAL:
            self.reference = base
        for refinement in self._refinements:
            self._measure_again(refinement)
        self._see(self._stand_at(self._before, self.plan))

    def _stand_at(self, before: Plan | None, plan: Plan) -> Tensor:
        """Bring the evaluators to a plan as if its trial had just been accepted, and give its losses."""
        if before is not None:
            self._accept(before)
        losses = self._evaluator.losses(plan)
        self._accept(plan)
        return losses

    def _measure_again(self, refinement: Refinement) -> None:
        """After a replay: the losses that order the samples, and the guard."""
        self._stand_at(refinement.before, refinement.plan)
        evaluator = self._evaluator
        if self._screen is not None:
            if refinement is self._refinements[0]:
                self.guard = self._screen.guard(refinement.removed)
            if refinement.precision == self._screen.precision:
                evaluator = self._screen
        refinement.losses = evaluator.losses(refinement.removed)

    def _accept(self, plan: Plan) -> None:
        self._evaluator.accept(plan)
        if self._screen is not None:
            self._screen.accept(plan)

    def _see(self, losses: Tensor) -> None:
        """Learn the losses of the plan as it is now."""
        self.current = losses
        if self.reference is None or self._helped_reference is HelpedReference.CURRENT:
            self.reference = losses

    def _see_base(self, losses: Tensor) -> None:
        self._base = losses
        self._on_base(losses)

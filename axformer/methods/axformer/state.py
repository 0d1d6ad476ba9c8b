"""The current state of a pass: its plan, and the losses that the next trial is compared with.

A replay does not restore these losses. They are measured again by way of the same plans as before, so they are equal bit for
bit.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor

from axformer.config import HelpedReference
from axformer.evaluation.base import Evaluator
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan


@dataclass
class Refinement:
    """An element whose parts are being tried."""

    before: Plan | None
    """The plan before ``plan``; None if nothing had been accepted."""
    plan: Plan
    """The plan on which the element was tried."""
    removed: Plan
    """The same plan with the element removed."""
    losses: Tensor | None
    """Losses with the element removed; None after a replay, until they are measured again."""


class PassState:
    """The current plan, the smallest loss so far, and the loss of every sample under the plan."""

    def __init__(
        self,
        evaluator: Evaluator,
        dimensions: Dimensions,
        helped_reference: HelpedReference,
        on_base: Callable[[Tensor], None],
    ) -> None:
        """Begin with the untouched model; ``on_base`` is called with its losses as soon as they have been measured."""
        self._evaluator = evaluator
        self._helped_reference = helped_reference
        self._on_base = on_base
        self._full = Plan.full(dimensions)
        self._before: Plan | None = None
        self._refinements: list[Refinement] = []
        self._base: Tensor | None = None
        """Losses of the untouched model. Like the next two, None after a replay until they are measured again."""
        self.current: Tensor | None = None
        """Losses of the current plan."""
        self.reference: Tensor | None = None
        """Losses that decide whether a sample was helped."""
        self.plan = self._full
        """The current plan, with everything accepted so far."""
        self.base_loss = math.inf
        self.min_loss = math.inf
        """Min_Loss of Algorithm 1."""

    def begin(self, loss: float, losses: Tensor | None) -> None:
        """Set the loss of the untouched model, and the loss of each sample; None if the trial is replayed."""
        self.base_loss = self.min_loss = loss
        if losses is not None:
            self.reference = self.current = losses
            self._see_base(losses)

    def accept(self, plan: Plan, loss: float, losses: Tensor | None) -> None:
        """Continue from an accepted plan, with the loss of each sample; None if the trial is replayed."""
        self._before, self.plan = self.plan, plan
        self.min_loss = min(self.min_loss, loss)
        if losses is not None:
            self._evaluator.accept(plan)
            self._see(losses)

    @contextmanager
    def refining(self, element: Refinement) -> Iterator[None]:
        """Try the parts of an element inside the ``with`` block."""
        self._refinements.append(element)
        yield
        self._refinements.pop()

    def refinement(self, removed: Plan, losses: Tensor | None) -> Refinement:
        """The refinement of an element that was tried on the current plan."""
        return Refinement(self._before, self.plan, removed, losses)

    def prepare(self) -> None:
        """Prepare for measuring a trial.

        After a replay, the losses for comparison are measured again. The trial of a part begins with the samples that removing
        the whole element hurt, since they decide it sooner.
        """
        self._catch_up()
        hurt = None
        if self._refinements:
            losses = self._refinements[-1].losses
            assert losses is not None, "they are measured again after a replay"
            assert self._base is not None, "the same"
            hurt = losses > self._base
        self._evaluator.see_first(hurt)

    def _catch_up(self) -> None:
        """After a replay, measure again the untouched model, the elements being refined, and the current plan.

        The current plan is measured as in the last accepted trial: starting from the plan before it.
        """
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
        """Bring the evaluator to a plan as if its trial had just been accepted, and return its losses."""
        if before is not None:
            self._evaluator.accept(before)
        losses = self._evaluator.losses(plan)
        self._evaluator.accept(plan)
        return losses

    def _measure_again(self, refinement: Refinement) -> None:
        """After a replay, measure again the losses that order the samples."""
        self._stand_at(refinement.before, refinement.plan)
        refinement.losses = self._evaluator.losses(refinement.removed)

    def _see(self, losses: Tensor) -> None:
        """Set the losses of the current plan."""
        self.current = losses
        if self.reference is None or self._helped_reference is HelpedReference.CURRENT:
            self.reference = losses

    def _see_base(self, losses: Tensor) -> None:
        self._base = losses
        self._on_base(losses)

"""A first look at a trial in low precision. It decides what is far from every line; float32 decides the rest."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from axformer.architectures.base import Architecture
from axformer.evaluation.base import Evaluator, Part
from axformer.evaluation.changes import first_changed_block
from axformer.evaluation.cut_layers import CutLayers
from axformer.evaluation.low_precision import low_precision, lower
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.guard import Guard
from axformer.plan import Plan

GUARD_SAMPLES = 500
"""Samples, at least, that the error is measured on, if there are so many."""


class Screen(Evaluator):
    """Shares what another evaluator remembers, and multiplies in low precision from the first changed block on."""

    def __init__(self, exact: PrefixEvaluator, model: Any, architecture: Architecture) -> None:
        self._exact = exact
        dtype = low_precision(model.device)
        self._layers = CutLayers(model, architecture, partial(lower, dtype=dtype))
        self._precision = str(dtype).removeprefix("torch.")
        self._guards: dict[int, Guard] = {}

    @property
    def precision(self) -> str:
        return self._precision

    @property
    def total(self) -> int:
        return self._exact.total

    def parts(self, plan: Plan) -> Iterator[Part]:
        return self._exact.parts_in(plan, self._layers, first_changed_block(self._exact.plan, plan))

    def accept(self, plan: Plan) -> None:  # noqa: ARG002 - the exact evaluator remembers it
        """Errors are measured again for the new plan."""
        self._guards = {}

    def guard(self, plan: Plan) -> Guard:
        """The error of losses under a plan: that of the plan as it is now, computed from the same block on."""
        first = first_changed_block(self._exact.plan, plan)
        if first not in self._guards:
            self._guards[first] = self._measure(first)
        return self._guards[first]

    def _measure(self, first: int) -> Guard:
        every = max(1, self.total // GUARD_SAMPLES)
        exact = self._exact.losses(self._exact.plan)
        low = torch.full_like(exact, torch.nan)
        for part in self._exact.parts_in(self._exact.plan, self._layers, first, every=every):
            low[part.places] = part.losses
        seen = ~low.isnan()
        return Guard.measured(low[seen], exact[seen])

"""The screen measures a trial in low precision first. It decides trials far from every threshold; float32 decides the rest."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator, Part, by_sample
from axformer.evaluation.changes import first_changed_block
from axformer.evaluation.cut_layers import CutLayers
from axformer.evaluation.guard import Guard
from axformer.evaluation.low_precision import low_precision
from axformer.evaluation.multiply import multiply_fast
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.model.number_format import name_of
from axformer.plan.plan import LayerPlan, Plan

MEASURED_ROWS = 300
"""Smallest number of model rows on which the error is measured, if the data has that many."""


class Screen(Evaluator):
    """An evaluator in low precision that knows its error. It uses the cache of another evaluator."""

    @abstractmethod
    def pairs(self, plan: Plan) -> tuple[Tensor, Tensor]:
        """Losses of some model rows under the current plan, in low precision and exact, shape (rows,) each.

        The former are computed in low precision from the first block that ``plan`` changes.
        """

    def guard(self, plan: Plan) -> Guard:
        """The error of the losses under a plan, measured from :meth:`pairs`."""
        return Guard.measured(*self.pairs(plan))

    def accept(self, plan: Plan) -> None:
        """Do nothing; the other evaluator accepts the plan."""

    def see_first(self, samples: Tensor | None) -> None:
        """Do nothing; the other evaluator sets the order."""


class LowPrecisionScreen(Screen):
    """Shares the cache of another evaluator, and multiplies in low precision from the first changed block on."""

    def __init__(self, exact: PrefixEvaluator, model: Any, architecture: Architecture, samples: Samples) -> None:
        self._exact = exact
        self._samples = samples
        dtype = low_precision(model.device)

        def convert(_: int, layer: nn.Module, plan: LayerPlan) -> None:
            multiply_fast(layer, plan, architecture=architecture, dtype=dtype)

        self._layers = CutLayers(model, architecture, convert)
        self._precision = name_of(dtype)

    @property
    def precision(self) -> str:
        return self._precision

    @property
    def total(self) -> int:
        return self._exact.total

    def parts(self, plan: Plan) -> Iterator[Part]:
        return by_sample(self.rows(plan), self._samples)

    def rows(self, plan: Plan) -> Iterator[Part]:
        """Yield the losses of model rows, batch by batch."""
        return self._exact.rows_in(plan, self._layers, first_changed_block(self._exact.plan, plan))

    def pairs(self, plan: Plan) -> tuple[Tensor, Tensor]:
        now, exact = self._exact.plan, self._exact.losses_now()
        first, every = first_changed_block(now, plan), max(1, len(exact) // MEASURED_ROWS)
        parts = list(self._exact.rows_in(now, self._layers, first, every))
        return torch.cat([part.losses for part in parts]), torch.cat([exact[part.places] for part in parts])

"""Evaluators of a validation set in shards."""

from collections.abc import Iterator

import torch
from torch import Tensor

from axformer.evaluation.base import Evaluator, Part, by_sample
from axformer.evaluation.screen import Screen
from axformer.evaluation.shard import Shards
from axformer.plan.plan import Plan


class ShardedEvaluator(Evaluator):
    """See :class:`axformer.evaluation.base.Evaluator`."""

    precision = "float32"

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    @property
    def total(self) -> int:
        return len(self._shards.samples)

    def parts(self, plan: Plan) -> Iterator[Part]:
        return by_sample(self._shards.rows(plan, low=False), self._shards.samples)

    def accept(self, plan: Plan) -> None:
        self._shards.accept(plan)

    def see_first(self, samples: Tensor | None) -> None:
        self._shards.see_first(samples)


class ShardedScreen(Screen):
    """See :class:`axformer.evaluation.screen.Screen`."""

    def __init__(self, shards: Shards, precision: str) -> None:
        self._shards = shards
        self._precision = precision

    @property
    def precision(self) -> str:
        return self._precision

    @property
    def total(self) -> int:
        return len(self._shards.samples)

    def parts(self, plan: Plan) -> Iterator[Part]:
        return by_sample(self._shards.rows(plan, low=True), self._shards.samples)

    def pairs(self, plan: Plan) -> tuple[Tensor, Tensor]:
        low, exact = zip(*self._shards.pairs(plan), strict=True)
        return torch.cat(low), torch.cat(exact)

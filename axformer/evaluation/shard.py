"""Shards: parts of the samples that are measured in parallel, by threads or processes.

The shards run in step: a trial takes one batch of each shard at a time. So the samples measured when a trial is decided do not
depend on the speed of any shard.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from axformer.architectures.registry import architecture_of
from axformer.data.batches import Samples
from axformer.evaluation.base import Part
from axformer.evaluation.fitting import Fitting
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.evaluation.screen import LowPrecisionScreen
from axformer.plan.plan import Plan
from axformer.tasks.base import Losses


@dataclass(frozen=True)
class Setup:
    """The common setup of all shards."""

    model: Any
    """The prepared model."""
    model_type: str
    task: Losses
    samples: Samples
    plan: Plan
    """The current plan."""
    budget: int
    """Bytes of activations of all shards together."""
    fitting: Fitting | None = None
    """Fits the remaining weights; only in threads."""

    def shards(self, wanted: int) -> int:
        """The number of shards to start: ``wanted``, but no more than there are batches."""
        return min(wanted, len(self.samples.batches))


class Shards(ABC):
    """All shards of one data set."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    @abstractmethod
    def begin(self, plan: Plan, *, low: bool) -> None:
        """Let all shards begin to evaluate a plan, in low precision or exactly."""

    @abstractmethod
    def next(self) -> Sequence[Part | None]:
        """The next batch of each shard; None for a shard that is done."""

    @abstractmethod
    def accept(self, plan: Plan) -> None:
        """Make a plan the current one of all shards. All further plans differ from it by one change."""

    @abstractmethod
    def see_first(self, samples: Tensor | None) -> None:
        """Set the order of all shards; see :meth:`axformer.evaluation.base.Evaluator.see_first`."""

    @abstractmethod
    def pairs(self, plan: Plan) -> Sequence[tuple[Tensor, Tensor]]:
        """Losses of some model rows of each shard, in low precision and exact."""

    def rows(self, plan: Plan, *, low: bool) -> Iterator[Part]:
        """Yield the losses of model rows, one batch of each shard at a time."""
        self.begin(plan, low=low)
        while parts := [part for part in self.next() if part is not None]:
            yield Part(torch.cat([part.places for part in parts]), torch.cat([part.losses for part in parts]))


class Shard:
    """One shard: every ``count``-th batch, starting with number ``place``."""

    def __init__(self, setup: Setup, place: int, count: int) -> None:
        architecture = architecture_of(setup.model_type)
        samples = replace(setup.samples, batches=setup.samples.batches[place::count])
        parts = setup.model, architecture, setup.task, samples
        self._exact = PrefixEvaluator(*parts, setup.plan, budget=setup.budget // count, fitting=setup.fitting)
        self._screen = LowPrecisionScreen(self._exact, setup.model, architecture, samples)
        self._rows: Iterator[Part] = iter(())

    def begin(self, plan: Plan, low: bool) -> None:
        """Begin to evaluate a plan, in low precision or exactly."""
        self._rows = self._screen.rows(plan) if low else self._exact.rows(plan)

    def next(self) -> Part | None:
        """Evaluate the next batch; None if all are done. The indices are those of model rows."""
        return next(self._rows, None)

    def accept(self, plan: Plan) -> None:
        """Make a plan the current one. All further plans differ from it by one change."""
        self._exact.accept(plan)

    def see_first(self, samples: Tensor | None) -> None:
        """Evaluate further plans beginning with batches rich in these samples, bool of shape (samples,)."""
        self._exact.see_first(samples)

    def pairs(self, plan: Plan) -> tuple[Tensor, Tensor]:
        """Losses of some model rows in low precision and exact; see :meth:`axformer.evaluation.screen.Screen.pairs`."""
        return self._screen.pairs(plan)

"""Parts of the samples that are measured side by side, by threads or by processes.

All go in step: a trial takes one batch of each at a time, so that what has been seen when a trial is decided does not depend on
how fast one of them is.
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
    """What all shards have in common."""

    model: Any
    """Prepared, of one of the supported families."""
    model_type: str
    task: Losses
    samples: Samples
    plan: Plan
    """The plan as it is now."""
    budget: int
    """Bytes of activations of all shards together."""
    fitting: Fitting | None = None
    """Gives the weights that stay other values; in threads alone."""

    def shards(self, wanted: int) -> int:
        """The number of shards to start when ``wanted`` are asked for: none may be without a batch."""
        return min(wanted, len(self.samples.batches))


class Shards(ABC):
    """All shards of one set."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    @abstractmethod
    def begin(self, plan: Plan, *, low: bool) -> None:
        """Let all begin to evaluate a plan, in low precision or exact."""

    @abstractmethod
    def next(self) -> Sequence[Part | None]:
        """The next batch of each; None if a shard is done."""

    @abstractmethod
    def accept(self, plan: Plan) -> None:
        """Tell all shards that the plans to come are this one with one more change."""

    @abstractmethod
    def see_first(self, samples: Tensor | None) -> None:
        """Pass it on to all shards; see :meth:`axformer.evaluation.base.Evaluator.see_first`."""

    @abstractmethod
    def pairs(self, plan: Plan) -> Sequence[tuple[Tensor, Tensor]]:
        """Losses of some model rows of each in low precision and exact."""

    def rows(self, plan: Plan, *, low: bool) -> Iterator[Part]:
        """The losses of model rows, one batch of each shard at a time."""
        self.begin(plan, low=low)
        while parts := [part for part in self.next() if part is not None]:
            yield Part(torch.cat([part.places for part in parts]), torch.cat([part.losses for part in parts]))


class Shard:
    """Every ``count``-th batch, beginning with number ``place``."""

    def __init__(self, setup: Setup, place: int, count: int) -> None:
        architecture = architecture_of(setup.model_type)
        samples = replace(setup.samples, batches=setup.samples.batches[place::count])
        parts = setup.model, architecture, setup.task, samples
        self._exact = PrefixEvaluator(*parts, setup.plan, budget=setup.budget // count, fitting=setup.fitting)
        self._screen = LowPrecisionScreen(self._exact, setup.model, architecture, samples)
        self._rows: Iterator[Part] = iter(())

    def begin(self, plan: Plan, low: bool) -> None:
        """Begin to evaluate a plan, in low precision or exact."""
        self._rows = self._screen.rows(plan) if low else self._exact.rows(plan)

    def next(self) -> Part | None:
        """Evaluate one batch of it; None if all are done. The places are those of model rows."""
        return next(self._rows, None)

    def accept(self, plan: Plan) -> None:
        """Learn that all plans to come are this one with one more change."""
        self._exact.accept(plan)

    def see_first(self, samples: Tensor | None) -> None:
        """Begin plans to come with batches that hold many of these samples, bool of shape (samples,)."""
        self._exact.see_first(samples)

    def pairs(self, plan: Plan) -> tuple[Tensor, Tensor]:
        """Losses of some model rows in low precision and exact; see :meth:`axformer.evaluation.screen.Screen.pairs`."""
        return self._screen.pairs(plan)

"""Measuring with several threads of this process, so that each core works on its own batch.

The operations of a small model are short. If cores share each operation, they wait for each other at each one; with separate
batches, they wait once per batch. PyTorch releases the interpreter lock while it computes.

The threads run in step: a trial takes one batch of each thread at a time. So the samples measured when a trial is decided do
not depend on the speed of any thread.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor

from axformer.architectures.base import Architecture
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator, Fitting, Part, by_sample
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.model.surgery import twin
from axformer.plan.plan import Plan
from axformer.pulse import beat
from axformer.tasks.base import Losses

MOST_THREADS = 4
"""With more threads, Python's work between operations, which runs in one thread at a time, would take much of the time."""


class ThreadedEvaluator(Evaluator):
    """See :class:`axformer.evaluation.base.Evaluator`. The threads run inside the context."""

    def __init__(
        self,
        model: Any,
        architecture: Architecture,
        task: Losses,
        samples: Samples,
        plan: Plan,
        *,
        budget: int,
        threads: int,
        cores: int,
        fitting: Fitting | None = None,
    ) -> None:
        """
        Args:
            plan: the current plan.
            budget: bytes of activations that all threads together cache.
            threads: limited by the number of batches; thread n measures every ``threads``-th batch from number n on.
            cores: number of cores that all threads together use.
            fitting: fits the remaining weights; None to leave them as they are.
        """
        count = min(threads, len(samples.batches))
        shares = [replace(samples, batches=samples.batches[first::count]) for first in range(count)]
        self._evaluators = [
            PrefixEvaluator(twin(model), architecture, task, share, plan, budget=budget // count, fitting=fitting)
            for share in shares
        ]
        self.samples = samples
        self._cores = cores
        self._fitting = fitting

    def __enter__(self) -> Self:
        count = len(self._evaluators)
        cores = partial(torch.set_num_threads, max(1, self._cores // count))
        self._pool = ThreadPoolExecutor(count, initializer=cores)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
        torch.set_num_threads(self._cores)  # the setting of a thread applies to all

    def parts(self, plan: Plan) -> Iterator[Part]:
        if self._fitting is not None:
            self._fitting.prepare(plan)
        return by_sample(self._rows(plan), self.samples)

    def accept(self, plan: Plan) -> None:
        for evaluator in self._evaluators:
            evaluator.accept(plan)

    def see_first(self, samples: Tensor | None) -> None:
        for evaluator in self._evaluators:
            evaluator.see_first(samples)

    def _rows(self, plan: Plan) -> Iterator[Part]:
        """Yield the losses of model rows, one batch of each thread at a time."""
        waiting = [evaluator.rows(plan) for evaluator in self._evaluators]
        while parts := [part for part in self._pool.map(_next, waiting) if part is not None]:
            beat()  # here: the threads have no listener
            yield Part(torch.cat([part.places for part in parts]), torch.cat([part.losses for part in parts]))


def threads_for(device: torch.device, cores: int) -> int:
    """Number of threads that measure in parallel when PyTorch uses this many cores."""
    return min(cores, MOST_THREADS) if device.type == "cpu" else 1


def _next(parts: Iterator[Part]) -> Part | None:
    return next(parts, None)

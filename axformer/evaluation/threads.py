"""Shards in threads of this process, so that each core works on its own batch.

The operations of a small model are short. If cores share each operation, they wait for each other at each one; with separate
batches, they wait once per batch. PyTorch releases the interpreter lock while it computes.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from axformer.evaluation.base import Part
from axformer.evaluation.shard import Setup, Shard, Shards
from axformer.plan.plan import Plan

MOST_THREADS = 4
"""With more threads, Python's work between operations, which runs in one thread at a time, would take much of the time."""

Answer = TypeVar("Answer")


class Threads(Shards):
    """Shards in threads, used as a context manager; the threads end with the context. Caches are kept for the next use."""

    def __init__(self, setup: Setup, count: int, cores: int) -> None:
        """
        Args:
            count: number of threads, limited by the number of batches.
            cores: number of cores that all threads together use.
        """
        super().__init__(setup.samples)
        count = setup.shards(count)
        self._shards = [Shard(replace(setup, model=_view(setup.model)), place, count) for place in range(count)]
        self._cores = cores

    def __enter__(self) -> "Threads":
        count = len(self._shards)
        cores = partial(torch.set_num_threads, max(1, self._cores // count))
        self._pool = ThreadPoolExecutor(count, initializer=cores)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
        torch.set_num_threads(self._cores)  # the setting of a thread applies to all

    def begin(self, plan: Plan, *, low: bool) -> None:
        for shard in self._shards:
            shard.begin(plan, low)

    def next(self) -> Sequence[Part | None]:
        return self._all(Shard.next)

    def accept(self, plan: Plan) -> None:
        for shard in self._shards:
            shard.accept(plan)

    def see_first(self, samples: Tensor | None) -> None:
        for shard in self._shards:
            shard.see_first(samples)

    def pairs(self, plan: Plan) -> Sequence[tuple[Tensor, Tensor]]:
        return self._all(partial(Shard.pairs, plan=plan))

    def _all(self, ask: Callable[[Shard], Answer]) -> list[Answer]:
        return list(self._pool.map(ask, self._shards))


def threads_for(device: torch.device, cores: int) -> int:
    """Number of threads that measure in parallel when PyTorch uses this many cores."""
    return min(cores, MOST_THREADS) if device.type == "cpu" else 1


def _view(model: Any) -> Any:
    """A copy of the model with separate modules and shared weights."""
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return deepcopy(model, shared | {id(model.config): model.config})

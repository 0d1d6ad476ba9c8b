"""Shards in threads of this process, so that each core has a batch of its own.

The operations of a small model are short, and cores that share each of them wait for each other at each. With batches of their
own they wait once a batch. PyTorch lets other threads run while it computes.
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
"""With more, what Python does between operations, one thread at a time, would take a good part of the time."""

Answer = TypeVar("Answer")


class Threads(Shards):
    """The threads. Use it as a context; they end with it. What was measured stays, for the next time that it is used as one."""

    def __init__(self, setup: Setup, count: int, cores: int) -> None:
        """
        Args:
            count: how many threads, if there are so many batches.
            cores: that all together compute with.
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
        torch.set_num_threads(self._cores)  # what one thread sets holds for all

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
    """How many threads measure side by side where PyTorch computes with so many cores."""
    return min(cores, MOST_THREADS) if device.type == "cpu" else 1


def _view(model: Any) -> Any:
    """The same model in modules of its own; all weights are shared."""
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return deepcopy(model, shared | {id(model.config): model.config})

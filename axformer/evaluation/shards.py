"""One validation set over several processes of one machine, each with a part of the samples.

All go in step: a trial takes one batch of each at a time, so that what has been seen when a trial is decided does not depend on
how fast a process is.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from axformer.architectures.registry import architecture_of
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator, Part, by_sample
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.evaluation.screen import LowPrecisionScreen, Screen
from axformer.evaluation.techniques import Techniques
from axformer.plan import Plan
from axformer.tasks.base import Task

STOP_SECONDS = 5
START_SECONDS = 300
"""A process that has not loaded its part after so long is given up."""


@dataclass(frozen=True)
class Setup:
    """What the processes need to begin. The model is prepared and has one of the supported families."""

    model: Any
    model_type: str
    task: Task
    samples: Samples
    plan: Plan
    budget: int
    """Bytes of activations of all processes together."""
    techniques: Techniques


class Shards:
    """The processes. Use it as a context; they end with it.

    Raises:
        RuntimeError: a process ended by itself, for example for want of memory.
    """

    def __init__(self, setup: Setup, count: int) -> None:
        self.samples = setup.samples
        self._setup = setup
        self._count = min(count, len(setup.samples.batches))
        self._shards: list[_Shard] = []
        self._stack = ExitStack()

    def __enter__(self) -> "Shards":
        with ExitStack() as stack:
            path = Path(stack.enter_context(TemporaryDirectory())) / "setup.pt"
            torch.save(self._setup, path)
            self._shards = [stack.enter_context(_Shard(path, place, self._count)) for place in range(self._count)]
            for shard in self._shards:
                shard.wait_until_ready()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def rows(self, plan: Plan, *, low: bool) -> Iterator[Part]:
        """The losses of model rows, one batch of each process at a time."""
        for shard in self._shards:
            shard.send("rows", plan, low)
        while True:
            for shard in self._shards:
                shard.send("next")
            parts = [part for part in (shard.receive() for shard in self._shards) if part is not None]
            if not parts:
                return
            places, losses = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            yield Part(torch.from_numpy(places), torch.from_numpy(losses))

    def accept(self, plan: Plan) -> None:
        """Tell all processes."""
        for shard in self._shards:
            shard.send("accept", plan)

    def pairs(self, plan: Plan) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses in low precision and exact, of some model rows of every process."""
        for shard in self._shards:
            shard.send("pairs", plan)
        low, exact = (np.concatenate(arrays) for arrays in zip(*[one.receive() for one in self._shards], strict=True))
        return torch.from_numpy(low), torch.from_numpy(exact)


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


class ShardedScreen(Screen):
    """See :class:`axformer.evaluation.screen.Screen`."""

    def __init__(self, shards: Shards, precision: str, plan: Plan) -> None:
        super().__init__(plan)
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

    def pairs(self, plan: Plan) -> tuple[torch.Tensor, torch.Tensor]:
        return self._shards.pairs(plan)


class _Shard:
    """One process, seen from outside. What goes wrong in it is raised here."""

    def __init__(self, path: Path, place: int, count: int) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, path, place, count), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> "_Shard":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.join(timeout=STOP_SECONDS)
        self._process.kill()
        self._process.join()

    def wait_until_ready(self) -> None:
        """Wait until the process has loaded its part."""
        if not self._connection.poll(START_SECONDS):
            raise RuntimeError(f"a shard did not begin within {START_SECONDS} seconds")
        self.receive()

    def send(self, name: str, *arguments: Any) -> None:
        """Ask for something; see :class:`_Server`."""
        try:
            self._connection.send((name, *arguments))
        except OSError:
            raise self._ended() from None

    def receive(self) -> Any:
        """The next answer."""
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):
            raise self._ended() from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _ended(self) -> RuntimeError:
        self._process.join(timeout=STOP_SECONDS)
        return RuntimeError(
            f"a shard of the pass ended by itself (exit code {self._process.exitcode}); "
            "-9 means that the system killed it, mostly for want of memory: use fewer shards or a smaller cache_budget"
        )


class _Server:
    """One process, seen from inside: what it is asked for, by name."""

    def __init__(self, setup: Setup, place: int, count: int) -> None:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // count))
        architecture = architecture_of(setup.model_type)
        samples = replace(setup.samples, batches=setup.samples.batches[place::count])
        parts = setup.model, architecture, setup.task, samples
        self._exact = PrefixEvaluator(*parts, setup.plan, budget=setup.budget // count, techniques=setup.techniques)
        self._screen = LowPrecisionScreen(self._exact, setup.model, architecture, samples)
        self._rows: Iterator[Part] = iter(())

    def rows(self, plan: Plan, low: bool) -> None:
        """Begin to evaluate a plan."""
        self._rows = self._screen.rows(plan) if low else self._exact.rows(plan)

    def next(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Evaluate one batch of it; null where all are done."""
        part = next(self._rows, None)
        return None if part is None else (part.places.numpy(), part.losses.numpy())

    def accept(self, plan: Plan) -> None:
        """Learn that all plans to come are this one with one more change."""
        self._exact.accept(plan)

    def pairs(self, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
        """Losses in low precision and exact."""
        low, exact = self._screen.pairs(plan)
        return low.numpy(), exact.numpy()


def _serve(connection: Connection, path: Path, place: int, count: int) -> None:
    gpus = torch.cuda.device_count()
    setup = torch.load(path, weights_only=False, map_location=f"cuda:{place % gpus}" if gpus else "cpu")
    server = _Server(setup, place, count)
    connection.send("ready")
    while True:
        try:
            name, *arguments = connection.recv()
        except EOFError:
            return
        try:
            answer = getattr(server, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - it is raised where somebody sees it
            answer = error
        if name in _ANSWERED or isinstance(answer, Exception):
            connection.send(answer)


_ANSWERED = frozenset({"next", "pairs"})

"""Shards in processes of one machine: one for each GPU, say."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from axformer.evaluation.base import Part
from axformer.evaluation.shard import Setup, Shard, Shards
from axformer.plan import Plan

STOP_SECONDS = 5
START_SECONDS = 300
"""A process that has not loaded its part after so long is given up."""


class Processes(Shards):
    """The processes. Use it as a context; they end with it.

    Raises:
        RuntimeError: a process ended by itself, for example for want of memory.
    """

    def __init__(self, setup: Setup, count: int) -> None:
        super().__init__(setup.samples)
        self._setup = setup
        self._count = setup.shards(count)
        self._processes: list[_Process] = []
        self._stack = ExitStack()

    def __enter__(self) -> "Processes":
        with ExitStack() as stack:
            path = Path(stack.enter_context(TemporaryDirectory())) / "setup.pt"
            torch.save(self._setup, path)
            self._processes = [stack.enter_context(_Process(path, place, self._count)) for place in range(self._count)]
            for process in self._processes:
                process.wait_until_ready()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(self, plan: Plan, *, low: bool) -> None:
        self._send("begin", plan, low)

    def next(self) -> Sequence[Part | None]:
        self._send("next")
        return [None if arrays is None else Part(*map(torch.from_numpy, arrays)) for arrays in self._answers()]

    def accept(self, plan: Plan) -> None:
        self._send("accept", plan)

    def see_first(self, samples: Tensor | None) -> None:
        self._send("see_first", samples if samples is None else samples.numpy())

    def pairs(self, plan: Plan) -> Sequence[tuple[Tensor, Tensor]]:
        self._send("pairs", plan)
        return [(torch.from_numpy(low), torch.from_numpy(exact)) for low, exact in self._answers()]

    def _send(self, name: str, *arguments: Any) -> None:
        for process in self._processes:
            process.send(name, *arguments)

    def _answers(self) -> list[Any]:
        return [process.receive() for process in self._processes]


class _Process:
    """One process, seen from outside. What goes wrong in it is raised here."""

    def __init__(self, path: Path, place: int, count: int) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, path, place, count), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> "_Process":
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
        """Ask for something; a method of :class:`axformer.evaluation.shard.Shard`, by name."""
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


def _serve(connection: Connection, path: Path, place: int, count: int) -> None:
    """What a process does: hold a shard, and do with it what it is told."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // count))
    gpus = torch.cuda.device_count()
    setup = torch.load(path, weights_only=False, map_location=f"cuda:{place % gpus}" if gpus else "cpu")
    shard = Shard(setup, place, count)
    connection.send("ready")
    while True:
        try:
            name, *arguments = connection.recv()
        except EOFError:
            return
        try:
            answer = getattr(shard, name)(*map(_as_tensor, arguments))
        except Exception as error:  # noqa: BLE001 - it is raised where somebody sees it
            connection.send(error)
            continue
        if name in _ANSWERS:
            connection.send(_ANSWERS[name](answer))


def _as_tensor(argument: Any) -> Any:
    return torch.from_numpy(argument) if isinstance(argument, np.ndarray) else argument


def _part_as_arrays(part: Part | None) -> Any:
    return None if part is None else (part.places.numpy(), part.losses.numpy())


def _pairs_as_arrays(pairs: tuple[Tensor, Tensor]) -> Any:
    return tuple(tensor.numpy() for tensor in pairs)


_ANSWERS: dict[str, Callable[[Any], Any]] = {"next": _part_as_arrays, "pairs": _pairs_as_arrays}
"""What is answered, and how it is sent: tensors of other processes would share their memory."""

"""Shards in separate processes of one machine, for example one for each GPU."""

import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from axformer.evaluation import shard_process
from axformer.evaluation.base import Part
from axformer.evaluation.shard import Setup, Shards
from axformer.plan.plan import Plan

STOP_SECONDS = 5
START_SECONDS = 300
"""Time after which a process that has not loaded its part is given up."""


class Processes(Shards):
    """Shards in processes, used as a context manager; the processes end with the context.

    Raises:
        RuntimeError: a process ended unexpectedly, for example because it ran out of memory.
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
    """The parent's end of one process. Errors in the process are raised here.

    The process is not started by ``multiprocessing``, which would run the caller's script again in each process, and cannot
    start any process in a Celery worker.
    """

    def __init__(self, path: Path, place: int, count: int) -> None:
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        with theirs:
            command = [
                sys.executable,
                "-m",
                shard_process.__name__,
                str(theirs.fileno()),
                str(path),
                str(place),
                str(count),
            ]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])  # noqa: S603

    def __enter__(self) -> "_Process":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self._process.kill()
        self._process.wait()

    def wait_until_ready(self) -> None:
        """Wait until the process has loaded its part."""
        if not self._connection.poll(START_SECONDS):
            raise RuntimeError(f"a shard did not begin within {START_SECONDS} seconds")
        self.receive()

    def send(self, name: str, *arguments: Any) -> None:
        """Call a method of :class:`axformer.evaluation.shard.Shard` by name."""
        try:
            self._connection.send((name, *arguments))
        except OSError:
            raise self._ended() from None

    def receive(self) -> Any:
        """Wait for the next answer; errors of the process are raised."""
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):
            raise self._ended() from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _ended(self) -> RuntimeError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        return RuntimeError(
            f"a shard of the pass ended by itself (exit code {self._process.returncode}); "
            "-9 means that the system killed it, mostly for want of memory: use fewer shards or a smaller cache_budget"
        )

"""The program of one shard's process, started by :mod:`axformer.evaluation.processes`:

    python -m axformer.evaluation.shard_process SOCKET SETUP PLACE COUNT

SOCKET is the number of an open socket. The program receives the names and arguments of the shard's methods from it, and ends
when it is closed.
"""

import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from axformer.evaluation.base import Part
from axformer.evaluation.shard import Shard


def serve(connection: Connection, path: Path, place: int, count: int) -> None:
    """Answer requests until the other end is closed.

    Args:
        connection: the connection to the parent process.
        path: the file with the common setup of all shards.
        place: index of this shard.
        count: number of shards.
    """
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
        except Exception as error:  # noqa: BLE001 - it is raised in the parent process
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
"""Methods that return something, and how it is sent. Tensors would share memory between the processes, so arrays are sent."""


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    os._exit(0)  # nothing needs to be cleaned up, and a regular exit of PyTorch takes a second

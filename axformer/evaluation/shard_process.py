"""The program of one shard's process, started by :mod:`axformer.evaluation.processes`:

    python -m axformer.evaluation.shard_process SOCKET SETUP PLACE COUNT

It holds the shard and does with it what it is told through SOCKET, the number of an open one; when that is closed, it ends.
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
    """Answer until the other end is closed.

    Args:
        connection: to who asks.
        path: of the setup that all shards have in common.
        place: of this shard.
        count: how many there are.
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


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    os._exit(0)  # there is nothing to put away, and to take PyTorch down takes a second

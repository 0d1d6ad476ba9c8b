"""Where activations go that must be kept and do not fit in memory: a memory-mapped file without a name.

The file is deleted from its directory before the first byte is written, so nothing has to be cleaned up, not even after a
kill: its room on the disk is free again when the last tensor that looks into it is gone. The system keeps its pages in main
memory while there is room. On a GPU that makes main memory the second place and the disk the third.
"""

import mmap
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor

from axformer.errors import ConfigError

_ALIGNMENT = 64  # bytes; a place starts where a tensor of any type may start


@dataclass(frozen=True)
class Spilled:
    """A tensor in the file; it is overwritten by the next one that is written to its place."""

    region: Tensor
    device: torch.device

    def read(self) -> Tensor:
        """A copy on the device that the tensor came from."""
        return self.region.to(self.device, copy=True)


class SpillFile:
    """Places of fixed sizes on the disk, each for one tensor at a time."""

    def __init__(self, places: Sequence[int], directory: Path | None = None) -> None:
        """Take the room on the disk, all of it now, because a disk that is full later would kill the process.

        Args:
            places: bytes of each place; one of 0 bytes is never written to.
            directory: where the file goes; the system's temporary directory where none is given.

        Raises:
            ConfigError: there is not enough room.
        """
        rounded = [-(-size // _ALIGNMENT) * _ALIGNMENT for size in places]
        self._starts = [0, *accumulate(rounded)][:-1]
        self.size = sum(rounded)
        """Bytes on the disk."""
        self._bytes = _mapped(self.size, directory or Path(tempfile.gettempdir())) if self.size else None

    def write(self, place: int, tensor: Tensor) -> Spilled:
        """Copy a tensor to a place; it comes back contiguous."""
        assert self._bytes is not None, "a place that is written to has bytes"
        start = self._starts[place]
        region = self._bytes[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
        return Spilled(region.copy_(tensor), tensor.device)


def _mapped(size: int, directory: Path) -> Tensor:
    """The bytes of a new file without a name, shape (size,)."""
    free = shutil.disk_usage(directory).free
    if size > free:
        raise ConfigError(
            f"knob cache_budget leaves {size} bytes of what every trial needs to a file, and {directory} has {free} "
            "bytes free; raise cache_budget, make room there, or let TMPDIR name a directory on a larger disk"
        )
    with tempfile.TemporaryFile(dir=directory) as file:
        file.truncate(size)
        if sys.platform == "linux":
            os.posix_fallocate(file.fileno(), 0, size)
        return torch.frombuffer(mmap.mmap(file.fileno(), size), dtype=torch.uint8)

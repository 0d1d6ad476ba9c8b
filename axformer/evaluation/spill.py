"""A memory-mapped file without a name, for activations that must be kept and do not fit into memory.

The file is deleted from its directory before the first byte is written, so nothing needs to be cleaned up, even after a kill:
the disk space is freed with the last tensor that refers to it. The operating system keeps the file's pages in main memory while
there is space. With a GPU, activations thus go to main memory second, and to the disk third.
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

_ALIGNMENT = 64  # bytes; suitable for tensors of any type


@dataclass(frozen=True)
class Spilled:
    """A tensor in the file; the next tensor written to the same place overwrites it."""

    region: Tensor
    device: torch.device

    def read(self) -> Tensor:
        """A copy on the tensor's original device."""
        return self.region.to(self.device, copy=True)


class SpillFile:
    """Places of fixed sizes on the disk, each for one tensor at a time."""

    def __init__(self, places: Sequence[int], directory: Path | None = None) -> None:
        """Reserve all the disk space at once, because a disk that fills up later would kill the process.

        Args:
            places: size of each place in bytes; a place of 0 bytes is never written to.
            directory: the directory of the file; None for the system's temporary directory.

        Raises:
            ConfigError: there is not enough space.
        """
        rounded = [-(-size // _ALIGNMENT) * _ALIGNMENT for size in places]
        self._starts = [0, *accumulate(rounded)][:-1]
        self.size = sum(rounded)
        """Size on the disk in bytes."""
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

"""The cache of activations of a pass, within a budget of bytes.

Blocks go by their numbers (:mod:`axformer.plan.blocks`). A *walk* runs a batch through the model for a trial that
changes block ``wanted``: it starts at the highest kept input at or below ``wanted``, computes the blocks in between, and offers
their inputs to the cache. Every batch has *slots* in memory, as many as the budget allows, each for one tensor of (tokens,
hidden).

1. The input of the wanted block and, while the block is refined, its output are always kept, because dozens of trials in a row
   need them. They are in slots, or in a file if the batch has fewer than two slots.
2. The other slots hold inputs of other blocks. If they are full, the least useful input is dropped: first the highest one above
   the wanted block, where few trials are still to come, then the one that is cheapest to compute from those below. A first walk
   leaves inputs spread over the model; with a slot for every block it leaves all of them.

What is kept depends on the calls alone, and tensors come back bit for bit. So a budget changes the time of a pass and nothing
else.
"""

import mmap
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor

from axformer.data.batches import Batch
from axformer.errors import ConfigError

_ALWAYS_KEPT = 2
"""Number of tensors of a batch that are kept whatever the budget: the input of the wanted block and its output."""
_ALIGNMENT = 64  # bytes; suitable for tensors of any type


@dataclass(frozen=True)
class Spilled:
    """A tensor in the file; the next tensor written to the same place overwrites it."""

    region: Tensor
    device: torch.device

    def read(self) -> Tensor:
        """A copy on the tensor's original device."""
        return self.region.to(self.device, copy=True)


@dataclass(frozen=True)
class _Added:
    """The output that a block adds to the residual stream."""

    block: int
    wanted: int
    """The block that walks are for as long as this is kept."""
    entry: Tensor | Spilled


@dataclass
class _Kept:
    """The kept tensors of one batch."""

    slots: int
    bytes: int
    """Size of one slot."""
    inputs: dict[int, Tensor | Spilled] = field(default_factory=dict)
    added: _Added | None = None

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors in memory."""
        entries = [*self.inputs.values(), self.added and self.added.entry]
        return [entry for entry in entries if isinstance(entry, Tensor)]

    def fit(self, wanted: int) -> None:
        """Drop inputs until the rest fits into the slots."""
        while len(self.tensors) > self.slots:
            del self.inputs[_least_useful(self.inputs, wanted)]


class Activations:
    """Keeps tensors of batches, with at most ``budget`` bytes in memory.

    The input of block 0 is never kept: it is the output of the embeddings, which the model computes on every walk.
    """

    def __init__(self, batch_bytes: Sequence[int], budget: int, directory: Path | None = None) -> None:
        """Divide the budget among the batches, and reserve disk space for required tensors that do not fit.

        Args:
            batch_bytes: for each batch, the size of the largest tensor that will be offered; see :func:`input_bytes`.
            budget: bytes on the device of the tensors; with 0, all required tensors are in the file.
            directory: the directory of the file, which should not be in memory; None for the system's temporary directory.

        Raises:
            ConfigError: the disk does not have enough space.
        """
        slots = slots_of(batch_bytes, budget)
        self._batches = [_Kept(count, size) for count, size in zip(slots, batch_bytes, strict=True)]
        self._file = SpillFile(
            [kept.bytes if kept.slots <= place else 0 for kept in self._batches for place in range(_ALWAYS_KEPT)],
            directory,
        )

    @property
    def held_bytes(self) -> int:
        """Bytes held in memory."""
        return sum(tensor.nbytes for kept in self._batches for tensor in kept.tensors)

    @property
    def spilled_bytes(self) -> int:
        """Size of the file; 0 if there is none."""
        return self._file.size

    def nearest(self, batch: int, block: int) -> tuple[int, Tensor] | None:
        """The highest block at or below ``block`` whose input is kept, with the input; None if a walk starts at the embeddings.

        The tensor may be the cached one, so callers must not write to it.
        """
        inputs = self._batches[batch].inputs
        highest = max((kept for kept in inputs if kept <= block), default=None)
        return None if highest is None else (highest, _read(inputs[highest]))

    def offer(self, batch: int, block: int, hidden: Tensor, wanted: int) -> None:
        """Offer the input of a block to the cache. Callers must not write to it afterwards.

        Args:
            block: at most ``wanted``; a walk offers its blocks in ascending order. An input that is already kept is not
                replaced.
            hidden: the input; it comes back contiguous.
            wanted: the block that the walk is for; the number of blocks if the trial changes nothing.
        """
        kept = self._batches[batch]
        if kept.added is not None and kept.added.wanted != wanted:
            kept.added = None
        if block > 0 and block not in kept.inputs:
            if kept.slots > 0:
                kept.inputs[block] = _owned(hidden, kept.bytes)
                kept.fit(wanted)
            elif block == wanted:
                kept.inputs = {block: self._spill(batch, 0, hidden)}

    def added(self, batch: int, block: int) -> Tensor | None:
        """The tensor passed to :meth:`keep_added` for this block, if it is still kept. Callers must not write to it."""
        added = self._batches[batch].added
        return _read(added.entry) if added is not None and added.block == block else None

    def keep_added(self, batch: int, block: int, added: Tensor, wanted: int) -> None:
        """Keep the output of the block under refinement until a walk is for another block.

        Args:
            wanted: the block that the walks of this refinement are for, which may lie below it.
        """
        kept = self._batches[batch]
        is_in_memory = kept.slots >= _ALWAYS_KEPT
        entry = _owned(added, kept.bytes) if is_in_memory else self._spill(batch, 1, added)
        kept.added = _Added(block, wanted, entry)
        kept.fit(wanted)

    def forget_above(self, block: int) -> None:
        """Drop the output of this block and the inputs of all blocks above it, because a change of the block was accepted."""
        for kept in self._batches:
            kept.inputs = {below: entry for below, entry in kept.inputs.items() if below <= block}
            if kept.added is not None and kept.added.block >= block:
                kept.added = None

    def _spill(self, batch: int, place: int, tensor: Tensor) -> Spilled:
        _check_fits(tensor, self._batches[batch].bytes)
        return self._file.write(batch * _ALWAYS_KEPT + place, tensor)


def input_bytes(batch: Batch, hidden_size: int) -> int:
    """Bytes of one block's input for this batch: a float32 for each token, including padding, and hidden unit."""
    return batch.inputs["input_ids"].numel() * hidden_size * torch.float32.itemsize


def slots_of(batch_bytes: Sequence[int], budget: int) -> list[int]:
    """How many tensors of each batch fit: equally many for all, plus one more for the first batches from what is left over."""
    everywhere, rest = divmod(budget, sum(batch_bytes))
    slots = []
    for size in batch_bytes:
        is_one_more = size <= rest
        rest -= size * is_one_more
        slots.append(everywhere + is_one_more)
    return slots


def _least_useful(inputs: dict[int, Tensor | Spilled], wanted: int) -> int:
    """The block whose input saves the least; never the wanted block."""
    highest = max(inputs)
    if highest > wanted:
        return highest
    below = [0, *sorted(block for block in inputs if block < wanted), wanted]
    # Without a block's input, walks to any block from there to the next kept one start at the previous kept input.
    missed = {
        block: (block - previous) * (following - block)
        for previous, block, following in zip(below, below[1:], below[2:], strict=False)
    }
    return min(missed, key=missed.__getitem__)


def _owned(tensor: Tensor, most: int) -> Tensor:
    """The tensor, or a copy if it is a view of a larger one, which would otherwise be kept too."""
    _check_fits(tensor, most)
    if tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.nbytes:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _check_fits(tensor: Tensor, most: int) -> None:
    if tensor.nbytes > most:
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)} has {tensor.nbytes} bytes; its batch said {most}")


def _read(entry: Tensor | Spilled) -> Tensor:
    return entry.read() if isinstance(entry, Spilled) else entry


class SpillFile:
    """Places of fixed sizes on the disk, each for one tensor at a time, in a memory-mapped file without a name.

    The file is deleted from its directory before the first byte is written, so nothing needs to be cleaned up, even after a
    kill: the disk space is freed with the last tensor that refers to it. The operating system keeps the file's pages in main
    memory while there is space. With a GPU, activations thus go to main memory second, and to the disk third.
    """

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

"""Which activations a pass keeps, within a budget of bytes.

Layer ``l`` has attention block ``2l`` and FFN block ``2l + 1``. A *walk* runs a batch through the model for a trial that
changes block ``wanted``: it starts at the highest kept input at or below ``wanted``, computes what lies between, and offers
what it passes. Every batch has *slots* in memory, as many as the budget gives, each for one tensor of (tokens, hidden).

1. The wanted block's input and, while the block is refined, what the block adds are always kept, because dozens of trials in
   a row need them: in slots, or in a file where a batch has fewer than two.
2. The other slots hold inputs of other blocks. When they are full, the one goes that saves the least: first the highest
   above the wanted block, where few trials are still to come, then the one that is best computed from those below.
   A first walk leaves inputs that are spread over the model; with a slot for every block it leaves all.

What is kept depends on the calls alone, and what comes back has the bits that were offered. So a budget changes the time of
a pass and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from axformer.data.batches import Batch
from axformer.evaluation.spill import Spilled, SpillFile

_ALWAYS_KEPT = 2
"""Tensors of a batch that are kept whatever the budget: the wanted block's input and what the block adds."""


@dataclass(frozen=True)
class _Added:
    """What a block adds to the residual stream."""

    block: int
    wanted: int
    """The block that walks are for while it is kept."""
    entry: Tensor | Spilled


@dataclass
class _Kept:
    """What is kept of one batch."""

    slots: int
    bytes: int
    """Of one slot."""
    inputs: dict[int, Tensor | Spilled] = field(default_factory=dict)
    added: _Added | None = None

    @property
    def tensors(self) -> list[Tensor]:
        """Those in memory."""
        entries = [*self.inputs.values(), self.added and self.added.entry]
        return [entry for entry in entries if isinstance(entry, Tensor)]

    def fit(self, wanted: int) -> None:
        """Let inputs go until the slots are enough."""
        while len(self.tensors) > self.slots:
            del self.inputs[_least_useful(self.inputs, wanted)]


class Activations:
    """Keeps tensors of batches, never more than ``budget`` bytes of them in memory.

    The input of block 0 is never kept: it comes out of the embeddings, which the model computes on every walk.
    """

    def __init__(self, batch_bytes: Sequence[int], budget: int, directory: Path | None = None) -> None:
        """Share out the budget, and take room on the disk for what must be kept and does not fit.

        Args:
            batch_bytes: for each batch, the bytes of the largest tensor that will be offered; see :func:`input_bytes`.
            budget: bytes on the device where the tensors are; may be 0, then all that must be kept is in the file.
            directory: where the file goes; the system's temporary directory where none is given. Not one in memory.

        Raises:
            ConfigError: the disk has no room for it.
        """
        slots = slots_of(batch_bytes, budget)
        self._batches = [_Kept(count, size) for count, size in zip(slots, batch_bytes, strict=True)]
        self._file = SpillFile(
            [kept.bytes if kept.slots <= place else 0 for kept in self._batches for place in range(_ALWAYS_KEPT)],
            directory,
        )
        self._held = 0
        self.peak_bytes = 0
        """The most bytes that were held in memory so far."""

    @property
    def spilled_bytes(self) -> int:
        """Size of the file, 0 where there is none."""
        return self._file.size

    def nearest(self, batch: int, block: int) -> tuple[int, Tensor] | None:
        """The highest kept block that is not above ``block``, and its input; None if a walk starts at the embeddings.

        The tensor may be the one in the cache: read it only.
        """
        inputs = self._batches[batch].inputs
        highest = max((kept for kept in inputs if kept <= block), default=None)
        return None if highest is None else (highest, _read(inputs[highest]))

    def offer(self, batch: int, block: int, hidden: Tensor, wanted: int) -> None:
        """Keep the input of a block, or not. Nobody may write to it afterwards.

        Args:
            block: at most ``wanted``; a walk offers its blocks in ascending order. What is kept already is not kept anew.
            hidden: comes back contiguous.
            wanted: the block that the walk is for; the number of blocks where the trial changes nothing.
        """
        kept = self._batches[batch]
        before = kept.tensors
        if kept.added is not None and kept.added.wanted != wanted:
            kept.added = None
        if block > 0 and block not in kept.inputs:
            if kept.slots > 0:
                kept.inputs[block] = _owned(hidden, kept.bytes)
                kept.fit(wanted)
            elif block == wanted:
                kept.inputs = {block: self._spill(batch, 0, hidden)}
        self._count(before, kept.tensors)

    def added(self, batch: int, block: int) -> Tensor | None:
        """What :meth:`keep_added` was given for this block, if it is still kept. Read it only."""
        added = self._batches[batch].added
        return _read(added.entry) if added is not None and added.block == block else None

    def keep_added(self, batch: int, block: int, added: Tensor, wanted: int) -> None:
        """Keep what the block under refinement adds to the residual stream, until a walk is for another block.

        Args:
            wanted: the block that the walks of this refinement are for, which may lie below it.
        """
        kept = self._batches[batch]
        before = kept.tensors
        is_in_memory = kept.slots >= _ALWAYS_KEPT
        entry = _owned(added, kept.bytes) if is_in_memory else self._spill(batch, 1, added)
        kept.added = _Added(block, wanted, entry)
        kept.fit(wanted)
        self._count(before, kept.tensors)

    def forget_above(self, block: int) -> None:
        """A change of this block was accepted: what it adds and the inputs of all blocks above it are stale."""
        for kept in self._batches:
            before = kept.tensors
            kept.inputs = {below: entry for below, entry in kept.inputs.items() if below <= block}
            if kept.added is not None and kept.added.block >= block:
                kept.added = None
            self._count(before, kept.tensors)

    def _spill(self, batch: int, place: int, tensor: Tensor) -> Spilled:
        _check_fits(tensor, self._batches[batch].bytes)
        return self._file.write(batch * _ALWAYS_KEPT + place, tensor)

    def _count(self, before: list[Tensor], after: list[Tensor]) -> None:
        self._held += sum(tensor.nbytes for tensor in after) - sum(tensor.nbytes for tensor in before)
        self.peak_bytes = max(self.peak_bytes, self._held)


def input_bytes(batch: Batch, hidden_size: int) -> int:
    """Bytes of one block's input for this batch: a float32 for each token, padding included, and hidden unit."""
    return batch.inputs["input_ids"].numel() * hidden_size * torch.float32.itemsize


def slots_of(batch_bytes: Sequence[int], budget: int) -> list[int]:
    """How many tensors of each batch fit: as many for all, and one more for the first ones as far as the rest reaches."""
    everywhere, rest = divmod(budget, sum(batch_bytes))
    slots = []
    for size in batch_bytes:
        is_one_more = size <= rest
        rest -= size * is_one_more
        slots.append(everywhere + is_one_more)
    return slots


def _least_useful(inputs: dict[int, Tensor | Spilled], wanted: int) -> int:
    """The block whose input is missed the least, never the wanted one."""
    highest = max(inputs)
    if highest > wanted:
        return highest
    below = [0, *sorted(block for block in inputs if block < wanted), wanted]
    # Without a block's input, each block from there to the next kept one is that much further from what is kept.
    missed = {
        block: (block - previous) * (following - block)
        for previous, block, following in zip(below, below[1:], below[2:], strict=False)
    }
    return min(missed, key=missed.__getitem__)


def _owned(tensor: Tensor, most: int) -> Tensor:
    """The tensor, or a copy where it is a part of something larger, which would be kept with it."""
    _check_fits(tensor, most)
    if tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.nbytes:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _check_fits(tensor: Tensor, most: int) -> None:
    if tensor.nbytes > most:
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)} has {tensor.nbytes} bytes; its batch said {most}")


def _read(entry: Tensor | Spilled) -> Tensor:
    return entry.read() if isinstance(entry, Spilled) else entry

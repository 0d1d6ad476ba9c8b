"""The order of rows in a training: batches of rows of similar length, so that little padding is computed."""

from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import Sampler

POOL = 50
"""Batches whose rows are sorted together. So many are enough for a tenth of padding, and few enough that batches differ from
epoch to epoch."""


class ByLength(Sampler[int]):
    """Draws rows at random, sorts some batches' worth of them by length, and draws the batches at random again.

    The order is a function of the seed and the epoch alone, so a training that was interrupted continues with the rows that it
    has not seen. The rows that do not fill a batch are a random few, and come last.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        """Draw from rows of so many tokens each."""
        super().__init__()
        self._lengths = lengths
        self._batch_size = batch_size
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Trainer calls this at the beginning of an epoch, counted from 0."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + self._epoch)
        drawn = torch.randperm(len(self), generator=generator).tolist()
        size, whole = self._batch_size, len(self) - len(self) % self._batch_size
        batches = []
        for start in range(0, whole, POOL * size):
            pool = sorted(drawn[start : min(start + POOL * size, whole)], key=self._lengths.__getitem__)
            batches += [pool[first : first + size] for first in range(0, len(pool), size)]
        for index in torch.randperm(len(batches), generator=generator).tolist():
            yield from batches[index]
        yield from drawn[whole:]

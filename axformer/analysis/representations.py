"""Representations: hidden states of a model at the positions that stand for the data, on disk.

They are numbers of 16 bits in a memory-mapped file, one matrix after the other for the state after the embeddings and after
each layer. No tensor of all positions and all layers is ever in memory: a forward pass writes its positions state by state, and
readers take one state, or some columns, at a time. A *dimension* is a column of one state (``hidden.LAYER.COLUMN``); all
dimensions are counted state by state.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from axformer.analysis.positions import Positions
from axformer.architectures.base import Architecture
from axformer.data.batches import Batch
from axformer.errors import CheckpointError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.wire.steps import Counter, never

ALL = slice(None)
CHUNK = 1024
"""Positions that a stream hands on together."""
SeeState = Callable[[int, Tensor], None]
"""Receives the number of a state, and the state of shape (sequences, tokens, hidden)."""


@dataclass(frozen=True)
class Representations:
    """The hidden states of one model on one data set, float16 of shape (states, positions, hidden) on disk."""

    states: np.ndarray
    counts: tuple[int, ...]
    """Positions of each model row, in the order of the data."""

    @property
    def layers(self) -> int:
        """Number of layers; there is one more state."""
        return len(self.states) - 1

    @property
    def positions(self) -> int:
        """Number of positions."""
        return int(self.states.shape[1])

    @property
    def hidden(self) -> int:
        """Width of a state."""
        return int(self.states.shape[2])

    @property
    def dimensions(self) -> int:
        """Number of dimensions of all states together."""
        return len(self.states) * self.hidden

    def state(self, layer: int) -> np.ndarray:
        """One state, float32 of shape (positions, hidden)."""
        return np.asarray(self.states[layer], dtype=np.float32)

    def columns(self, dimensions: Sequence[int], places: np.ndarray | slice = ALL) -> np.ndarray:
        """Some dimensions in the given order, float32 of shape (positions, dimensions).

        Args:
            dimensions: their numbers, counted state by state.
            places: the positions that are read.
        """
        wanted = np.asarray(dimensions, dtype=int)
        layers = wanted // self.hidden
        count = len(np.arange(self.positions)[places])
        found = np.empty((count, len(wanted)), dtype=np.float32)
        for layer in np.unique(layers):
            columns = np.flatnonzero(layers == layer)
            found[:, columns] = self.states[layer][places][:, wanted[columns] % self.hidden]
        return found

    def chunks(self, layer: int, places: np.ndarray) -> Iterator[np.ndarray]:
        """One state in parts, float64 of shape (at most 1024, hidden).

        Args:
            layer: the number of the state.
            places: the positions that are read.
        """
        for start in range(0, len(places), CHUNK):
            yield np.asarray(self.states[layer, places[start : start + CHUNK]], dtype=np.float64)


def represent(
    checkpoint: Checkpoint,
    data: DataSet,
    positions: Positions,
    file: Path,
    counter: Counter,
    check_cancelled: Callable[[], None] = never,
) -> Representations:
    """Run a model over a data set, and store its hidden states.

    Args:
        checkpoint: the model; its head is not run.
        data: the data set.
        positions: where states are read.
        file: a new file, which ends with ``.npy``.
        counter: told of each batch.
        check_cancelled: called before each batch; an exception from it ends the run.

    Raises:
        CheckpointError: a state does not fit 16 bits, or is not a number.
    """
    batches = data.samples.batches
    counts = [0] * len(data.samples.sample_of_row)
    for batch in batches:
        for row, count in zip(batch.rows.tolist(), positions.counts(batch), strict=True):
            counts[row] = count
    starts = [0, *accumulate(counts)]
    model, architecture = checkpoint.model, checkpoint.architecture
    shape = len(architecture.layers(model)) + 1, starts[-1], int(model.config.hidden_size)
    states = np.lib.format.open_memmap(file, mode="w+", dtype=np.float16, shape=shape)
    counter.begin()
    for batch in batches:
        check_cancelled()
        rows = batch.rows.tolist()
        places = np.concatenate([np.arange(starts[row], starts[row + 1]) for row in rows])
        _write(model, architecture, batch, positions, states, places)
        counter.advance()
    states.flush()
    return Representations(states, tuple(counts))


@torch.inference_mode()
def _write(
    model: Any, architecture: Any, batch: Batch, positions: Positions, states: np.ndarray, places: np.ndarray
) -> None:
    """Write the states of one batch to their places."""
    if not len(places):
        return

    def see(layer: int, hidden: Tensor) -> None:
        half = positions.read(batch, hidden).half().cpu()
        if not torch.isfinite(half).all():
            raise CheckpointError(
                f"the hidden state after {layer} layers holds values beyond {np.finfo(np.float16).max:g} or no numbers, "
                "which an analysis cannot store in 16 bits; check the model's weights"
            )
        states[layer, places] = half.numpy()

    with watched_states(model, architecture, see):
        model.base_model(**{name: values.flatten(end_dim=-2) for name, values in batch.inputs.items()})


@contextmanager
def watched_states(model: Any, architecture: Architecture, see: SeeState) -> Iterator[None]:
    """Inside the ``with`` block, call ``see`` with every hidden state of a prepared model, in order, as it is computed.

    Hidden states are the residual stream after the embeddings and after each layer, as transformers counts them. State 0 is
    what the lowest layer receives, state ``l`` what layer ``l`` receives, and the last one what the base model returns: in
    families with a norm after the last layer, its output.
    """
    layers = architecture.layers(model)

    def of_layer(index: int, _: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        hidden = args[0] if args else kwargs["hidden_states"]
        see(index, hidden if architecture.token_axis == 1 else hidden.transpose(0, 1))

    with ExitStack() as undo:
        for index, layer in enumerate(layers):
            hook = layer.register_forward_pre_hook(partial(of_layer, index), with_kwargs=True)
            undo.callback(hook.remove)
        last = model.base_model.register_forward_hook(lambda _, __, output: see(len(layers), output[0]))
        undo.callback(last.remove)
        yield

"""Goes up a model block by block: the inputs of one block are held for all data, so that a block can be looked at, changed and
run again without what lies below or above it.

Two arrays of the size of the data, tokens times hidden size, are all that is held.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights
from axformer.data.batches import Batch, Samples
from axformer.evaluation.walk import Walk
from axformer.plan.plan import Plan

See = Callable[[Batch, Tensor], None]


class _Arrived(Exception):  # noqa: N818 - it is no error
    """The input of the next block is there."""


class Blockwise:
    """A model under a plan, stopped in front of one block for all data."""

    def __init__(
        self, model: Any, architecture: Architecture, samples: Samples, plan: Plan, layers: Sequence[nn.Module]
    ) -> None:
        """
        Args:
            model: whole and prepared; its embeddings and masks are used.
            architecture: its family.
            samples: the data.
            plan: what is left of the model.
            layers: its layers as the plan leaves them.
        """
        self._model = model
        self._architecture = architecture
        self._samples = samples
        self._plan = plan
        self._layers = layers
        self._inputs: list[Tensor | None] = [None] * len(samples.batches)
        self._seen: list[Tensor | None] = []
        """The inputs of the next block, as far as a look has come by them."""
        self.block = 0
        """The block in front of which it stands."""

    @property
    def layer(self) -> nn.Module:
        """The layer of the block."""
        return self._layers[self.block // 2]

    @property
    def weights(self) -> BlockWeights:
        """The weights of the block, which is not removed and has heads or neurons."""
        return self._architecture.layout(self.block).weights(self.layer)

    def share_inputs(self, other: "Blockwise") -> None:
        """Stand where another does, whose blocks below are the same."""
        self._inputs, self.block, self._seen = list(other._inputs), other.block, []

    def forget(self) -> None:
        """Learn that the weights of the block have changed since the last look."""
        self._seen = []

    def look(self) -> Iterator[tuple[Batch, Tensor]]:
        """What comes into the output projection of the block, batch by batch, shape (sequences, tokens, columns)."""
        self._seen = []
        for index, batch in enumerate(self._samples.batches):
            seen: list[Tensor] = []

            def see(x: Tensor, seen: list[Tensor] = seen) -> Tensor:
                seen.append(x)
                return x

            end = self.weights.watch(see)
            try:
                self._seen.append(self._run(index, batch))
            finally:
                end()
            yield batch, seen[0] if self._architecture.token_axis == 1 else seen[0].transpose(0, 1)

    def advance(self) -> None:
        """Run the block, and stand in front of the next."""
        batches = self._samples.batches
        if self.block + 1 < 2 * len(self._layers) and len(self._seen) < len(batches):
            self._seen = [self._run(index, batch) for index, batch in enumerate(batches)]
        self._inputs, self._seen = self._seen, []
        self.block += 1

    @torch.inference_mode()
    def _run(self, index: int, batch: Batch) -> Tensor | None:
        """Run the block on one batch; gives the input of the next one, None behind the last."""
        arrived: list[Tensor] = []

        def keep(block: int, hidden: Tensor) -> None:
            if block == self.block + 1:
                arrived.append(hidden)
                raise _Arrived

        walk = Walk(
            self._architecture,
            self._plan,
            [self._layers[block // 2] for block in range(2 * len(self._layers))],
            start=self.block,
            entry=self._inputs[index],
            keep=keep,
        )
        try:
            with walk.on(self._model):
                self._model(**batch.inputs)
        except _Arrived:
            return arrived[0]
        return None

"""Walks up a model block by block, holding the inputs of one block for all data.

A block can thus be observed, changed and run again without running the blocks below or above it. At most two arrays of the size
of the data, tokens times hidden size, are held.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights
from axformer.data.batches import Batch, Samples
from axformer.evaluation.cut_layers import Convert, CutLayers, leave
from axformer.evaluation.multiply import multiply_fast
from axformer.evaluation.walk import Walk
from axformer.plan.blocks import Block, all_blocks
from axformer.plan.plan import LayerPlan, Plan


class _Arrived(Exception):  # noqa: N818 - not an error
    """Raised when the input of the next block is known."""


class Blockwise:
    """A model under a plan, positioned at one block for all data."""

    def __init__(
        self, model: Any, architecture: Architecture, samples: Samples, plan: Plan, change: Convert = leave
    ) -> None:
        """Begin at the first block of a whole, prepared model, which is not changed; ``change`` gets each cut layer."""
        self._model = model
        self._architecture = architecture
        self.samples = samples
        self._plan = plan
        self._change = change
        self._layers = self._cut().get(plan)
        self._inputs: list[Tensor | None] = [None] * len(samples.batches)
        self._seen: list[Tensor | None] = []
        """The inputs of the next block, as far as :meth:`look` has computed them."""
        self.block = Block.at(0)
        """The current block, which runs next."""

    @property
    def layer(self) -> nn.Module:
        """The layer of the current block."""
        return self._layers[self.block.layer]

    @property
    def weights(self) -> BlockWeights:
        """The weights of the current block, which must have heads or neurons."""
        return self._architecture.layout(self.block).weights(self.layer)

    @property
    def inputs(self) -> Iterator[Tensor | None]:
        """What enters the current block, batch by batch, shaped (sequences, tokens, hidden); None for the first block."""
        for hidden in self._inputs:
            yield hidden if hidden is None or self._architecture.token_axis == 1 else hidden.transpose(0, 1)

    def share_inputs(self, other: "Blockwise") -> None:
        """Take over the position and inputs of another walk whose blocks below are the same."""
        self._inputs, self.block, self._seen = list(other._inputs), other.block, []

    def cut_again(self) -> None:
        """Cut and change the current layer once more, and discard what the last :meth:`look` computed with the former one."""
        index = self.block.layer
        self._layers[index] = self._cut().one(index, self._plan.layers[index])
        self._seen = []

    def look(self) -> Iterator[tuple[Batch, Tensor]]:
        """Yield the input of the current block's output projection, batch by batch, shape (sequences, tokens, columns)."""
        self._seen = []
        for index, batch in enumerate(self.samples.batches):
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
        """Run the current block and move to the next one."""
        batches = self.samples.batches
        following = Block.at(self.block.number + 1)
        if following.layer < len(self._layers) and len(self._seen) < len(batches):
            self._seen = [self._run(index, batch) for index, batch in enumerate(batches)]
        self._inputs, self._seen = self._seen, []
        self.block = following

    def _cut(self) -> CutLayers:
        return CutLayers(self._model, self._architecture, self._converted)

    def _converted(self, index: int, layer: nn.Module, plan: LayerPlan) -> None:
        self._change(index, layer, plan)
        multiply_fast(layer, plan, architecture=self._architecture)

    @torch.inference_mode()
    def _run(self, index: int, batch: Batch) -> Tensor | None:
        """Run the current block on one batch and return the input of the next block; None after the last block."""
        arrived: list[Tensor] = []

        def keep(block: int, hidden: Tensor) -> None:
            if block == self.block.number + 1:
                arrived.append(hidden)
                raise _Arrived

        walk = Walk(
            self._architecture,
            self._plan,
            [self._layers[block.layer] for block in all_blocks(len(self._layers))],
            start=self.block.number,
            entry=self._inputs[index],
            keep=keep,
        )
        try:
            with walk.on(self._model):
                self._model(**batch.inputs)
        except _Arrived:
            return arrived[0]
        return None

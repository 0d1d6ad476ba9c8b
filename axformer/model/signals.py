"""Signals: squares and gradients at the input of every block's output projection.

Heads and neurons add to the residual stream through the output projection of their block, y = W x + b. Each owns some columns
of x: its context, or its activation. All measurements that methods and repairs need besides losses are taken here:

- *squares*, the mean of the square of each column of x over the tokens of some data; no label is used;
- *gradients*, the sum of x * dL/dx over the columns of a unit and the tokens of a sample. This is the derivative of the
  sample's loss with respect to a gate on that unit, at 1: its importance (Michel et al., Are Sixteen Heads Really Better than
  One?, 2019) and, squared, the diagonal of the Fisher information (Kwon et al., 2022).

Padding is not counted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from axformer.architectures.base import Architecture, BlockWeights
from axformer.data.batches import Batch, Samples
from axformer.plan.blocks import Block, all_blocks
from axformer.tasks.base import Losses


class Signals:
    """Measures the inputs of the output projections of a prepared model, which is not changed."""

    def __init__(self, model: Any, architecture: Architecture, samples: Samples) -> None:
        """Measure a whole, adopted model (:meth:`axformer.architectures.base.Architecture.adopt`)."""
        self._model = model
        self._architecture = architecture
        self._samples = samples
        self._dimensions = architecture.dimensions(model.config)

    @staticmethod
    def blocks_of(model: Any, architecture: Architecture) -> list[BlockWeights]:
        """The weights of every block of a model, bottom first."""
        layers = architecture.layers(model)
        return [architecture.layout(block).weights(layers[block.layer]) for block in all_blocks(len(layers))]

    def blocks(self) -> list[BlockWeights]:
        """The weights of every block, bottom first."""
        return self.blocks_of(self._model, self._architecture)

    def units(self, number: int) -> int:
        """Number of heads or neurons of the block with a number."""
        return Block.at(number).size(self._dimensions)

    @torch.inference_mode()
    def mean_squares(self) -> list[Tensor]:
        """The mean of the square of each column over all tokens of the data, shape (columns,), float64, for every block."""
        blocks, count = self.blocks(), 0
        sums: dict[int, Tensor] = {}
        for batch in self._samples.batches:
            real = _real_tokens(batch)
            count += int(real.sum())

            def see(block: int, x: Tensor, real: Tensor = real) -> Tensor:
                squares = self._rows_first(x)[real].double().square().sum(dim=0)
                sums[block] = sums[block] + squares if block in sums else squares
                return x

            with _watching(blocks, see):
                self._model(**batch.inputs)
        return [sums[block] / count for block in range(len(blocks))]

    def gradients(self, task: Losses) -> Iterator[tuple[Tensor, list[Tensor]]]:
        """The derivative of each model row's loss with respect to a gate on each unit, batch by batch.

        Yields:
            Indices of the model rows, shape (rows,), and the derivatives for every block, shape (rows, units), in float32 on
            the CPU.
        """
        for batch, pairs in self.slopes(lambda output, batch: task.losses(output, batch).sum()):
            yield batch.rows.cpu(), [self._by_unit(block, *pair, batch) for block, pair in enumerate(pairs)]

    def slopes(self, number_of: Callable[[Any, Batch], Tensor]) -> Iterator[tuple[Batch, list[tuple[Tensor, Tensor]]]]:
        """The derivative of a number with respect to the input of each output projection, batch by batch.

        Yields:
            The batch, and for every block the input and the derivative, both of shape (sequences, tokens, columns).
        """
        blocks = self.blocks()
        for batch in self._samples.batches:
            seen: dict[int, Tensor] = {}

            def see(block: int, x: Tensor, seen: dict[int, Tensor] = seen) -> Tensor:
                seen[block] = x if x.requires_grad else x.detach().requires_grad_()
                return seen[block]

            with torch.enable_grad(), _watching(blocks, see):
                number = number_of(self._model(**batch.inputs), batch)
            inputs = [seen[block] for block in range(len(blocks))]
            found = torch.autograd.grad(number, inputs, materialize_grads=True)
            yield (
                batch,
                [
                    (self._rows_first(x.detach()), self._rows_first(slope))
                    for x, slope in zip(inputs, found, strict=True)
                ],
            )

    def _by_unit(self, block: int, x: Tensor, slope: Tensor, batch: Batch) -> Tensor:
        each = x * slope
        by_column = each.flatten(end_dim=-3).sum(dim=-2).view(len(batch.rows), -1, each.shape[-1]).sum(dim=1)
        return by_column.view(len(batch.rows), self.units(block), -1).sum(dim=-1).float().cpu()

    def _rows_first(self, x: Tensor) -> Tensor:
        """Convert the family's order of axes to (sequences, tokens, columns)."""
        return x if self._architecture.token_axis == 1 else x.transpose(0, 1)


@contextmanager
def _watching(blocks: list[BlockWeights], see: Callable[[int, Tensor], Tensor]) -> Iterator[None]:
    """Inside the ``with`` block, call ``see`` with the input of every output projection."""
    ends = []
    try:
        for index, block in enumerate(blocks):
            ends.append(block.watch(partial(see, index)))
        yield
    finally:
        for end in ends:
            end()


def _real_tokens(batch: Batch) -> Tensor:
    """A mask of the tokens that are not padding, bool of shape (sequences, tokens). Each choice is a sequence of its own."""
    return batch.inputs["attention_mask"].flatten(end_dim=-2).bool()

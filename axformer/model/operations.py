"""Count the operations that a plan leaves, from the shapes of a whole model and the lengths of its data.

The count covers the multiplications and additions of matrix products, two for each pair: the layers' projections, attention
scores and weighted sums, and the projections outside of the layers. Inputs have their own lengths, without padding. It is an
estimate of speed: norms, activations and memory access take time too, and shrink less. It counts what compact models compute
at all positions; hard attention saves nothing there. That their last layers may compute only one position is left out for
every plan alike.

The count is a function of the plan alone, so it may decide when a pass stops: a resumed pass stops at the same trial. The
actual speed is measured afterwards and is in the report.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from axformer.architectures.base import Architecture, BlockWeights
from axformer.architectures.embedder import behind_of
from axformer.architectures.slices import is_projection
from axformer.plan.plan import Plan, kept_neurons

PER_WEIGHT = 2
"""A multiplication and an addition."""


class Operations:
    """Counts the operations that plans leave of a prepared model."""

    def __init__(self, model: Any, architecture: Architecture, *, pooled: bool, lengths: Tensor) -> None:
        """
        Args:
            model: whole and prepared.
            pooled: whether the head reads one position of an input instead of all.
            lengths: tokens of each model row, shape (rows,).
        """
        dimensions = architecture.dimensions(model.config)
        self._units = dimensions.heads, dimensions.intermediate_size
        layers = architecture.layers(model)
        self._blocks = [(architecture.attention.weights(layer), architecture.ffn.weights(layer)) for layer in layers]
        self._tokens = int(lengths.sum())
        self._pairs = int(lengths.square().sum())
        inside = {id(parameter) for layer in layers for parameter in layer.parameters()}
        matrices = [weight for layer in behind_of(model) for weight in layer.parameters() if weight.dim() > 1]
        behind = {id(weight): weight.numel() for weight in matrices}
        outside = sum(
            module.weight.numel()
            for module in model.modules()
            if is_projection(module) and id(module.weight) not in inside | behind.keys()
        )
        # Heads of decoders compute all positions and select one afterwards.
        times = len(lengths) if pooled and not architecture.causal else self._tokens
        self._outside = PER_WEIGHT * (outside * times + sum(behind.values()) * len(lengths))

    def left(self, plan: Plan) -> int:
        """Operations of one forward pass over all the data."""
        total: int = self._outside + self.encoder(plan)
        return total

    def encoder(self, plan: Plan) -> int:
        """Operations of the transformer layers alone (see :mod:`axformer.model.parameters`)."""
        total = 0
        for (attention, ffn), layer in zip(self._blocks, plan.layers, strict=True):
            total += self._projections(attention, layer.heads, self._units[0])
            total += self._mixing(attention) * len(layer.heads)
            total += self._projections(ffn, kept_neurons(layer), self._units[1])
        return total

    def _projections(self, block: BlockWeights, units: Sequence[int], total: int) -> int:
        """Operations of a block's input and output projections for these units."""
        weights = 0
        for part in (*block.inputs, block.output):
            parameter = part.parameter
            if parameter.dim() > 1:
                weights += part.count(units, total) * parameter.numel() // parameter.shape[part.axis]
        return PER_WEIGHT * weights * self._tokens

    def _mixing(self, block: BlockWeights) -> int:
        """Operations of one head for each pair of tokens: its score and its weighted sum."""
        head_size = block.output.parameter.shape[block.output.axis] // self._units[0]
        return 2 * PER_WEIGHT * head_size * self._pairs

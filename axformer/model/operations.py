"""How many operations a plan leaves, counted from the shapes of a whole model and the lengths of its data.

What is counted are the multiplications and additions of matrix products, two for each pair: those of the layers' projections,
of attention's scores and of the sums that they weigh, and of the projections outside of the layers. An input is as long as it
is, without padding. It is an estimate of speed: norms, activations and reading memory take time too, and they shrink less. What
a plan leaves is what the library's compact models compute at all positions; hard attention saves nothing there. That their
last layers compute one position where the head reads one is left out, with any plan alike.

Being a function of the plan alone, it may decide when a pass stops: a pass that is taken up again stops at the same trial. What
speed came of it on a machine is measured afterwards, and stands in the report.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from axformer.architectures.base import Architecture, BlockWeights
from axformer.architectures.slices import is_projection
from axformer.plan.plan import Plan, kept_neurons

PER_WEIGHT = 2
"""A multiplication and an addition."""


class Operations:
    """Counts the operations that are left of one prepared model under any plan."""

    def __init__(self, model: Any, architecture: Architecture, *, pooled: bool, lengths: Tensor) -> None:
        """
        Args:
            model: whole and prepared.
            architecture: its family.
            pooled: whether the head reads one position of an input, or all.
            lengths: tokens of each model row, shape (rows,).
        """
        dimensions = architecture.dimensions(model.config)
        self._units = dimensions.heads, dimensions.intermediate_size
        layers = architecture.layers(model)
        self._blocks = [(architecture.attention.weights(layer), architecture.ffn.weights(layer)) for layer in layers]
        self._tokens = int(lengths.sum())
        self._pairs = int(lengths.square().sum())
        inside = {id(parameter) for layer in layers for parameter in layer.parameters()}
        outside = sum(
            module.weight.numel()
            for module in model.modules()
            if is_projection(module) and id(module.weight) not in inside
        )
        # Decoders' heads compute scores at all positions and take one of them afterwards.
        self._outside = PER_WEIGHT * outside * (len(lengths) if pooled and not architecture.causal else self._tokens)

    def left(self, plan: Plan) -> int:
        """Operations of one look at all the data."""
        total: int = self._outside + self.encoder(plan)
        return total

    def encoder(self, plan: Plan) -> int:
        """Those of them that the transformer layers take (see :mod:`axformer.model.parameters`)."""
        total = 0
        for (attention, ffn), layer in zip(self._blocks, plan.layers, strict=True):
            total += self._projections(attention, layer.heads, self._units[0])
            total += self._mixing(attention) * len(layer.heads)
            total += self._projections(ffn, kept_neurons(layer), self._units[1])
        return total

    def _projections(self, block: BlockWeights, units: Sequence[int], total: int) -> int:
        """Of a block's projections in and out, as far as these units own them."""
        weights = 0
        for part in (*block.inputs, block.output):
            parameter = part.parameter
            if parameter.dim() > 1:
                weights += part.count(units, total) * parameter.numel() // parameter.shape[part.axis]
        return PER_WEIGHT * weights * self._tokens

    def _mixing(self, block: BlockWeights) -> int:
        """Of one head: its scores, and its sums of values by them; both for each pair of tokens."""
        head_size = block.output.parameter.shape[block.output.axis] // self._units[0]
        return 2 * PER_WEIGHT * head_size * self._pairs

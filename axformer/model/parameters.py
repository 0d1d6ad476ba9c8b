"""Count the parameters that a plan leaves, from the shapes of a whole model, without building the small one.

The *encoder* is the transformer layers with all their parameters, including norms and biases: what a pass can remove, and the
norms around it. It excludes embeddings, anything between them and the layers, norms after the last layer, poolers and heads.
These are the parameters that the paper compresses (III-A.1); in a small model they may be less than half.

Layers may share their weights (ALBERT). A shared weight is counted once, as in the model's files, and remains as long as any
layer needs it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights
from axformer.architectures.slices import Slice
from axformer.plan.plan import Plan, kept_neurons


class ParameterCount:
    """Counts the parameters that plans leave of a prepared model."""

    def __init__(self, model: Any, architecture: Architecture) -> None:
        dimensions = architecture.dimensions(model.config)
        self._units = dimensions.heads, dimensions.intermediate_size
        layers = architecture.layers(model)
        self._inside = [{id(weight): weight.numel() for weight in layer.parameters()} for layer in layers]
        self._outside: int = sum(parameter.numel() for parameter in model.parameters()) - _total(self._inside)
        self._blocks = [(architecture.attention.weights(layer), architecture.ffn.weights(layer)) for layer in layers]

    def left(self, plan: Plan) -> int:
        """Parameters of the model that surgery would leave."""
        return self._outside + self.encoder(plan)

    def encoder(self, plan: Plan) -> int:
        """Parameters of the encoder; nothing else can be removed."""
        uses = _Uses()
        for index in plan.remaining:
            blocks, layer = self._blocks[index], plan.layers[index]
            kept = ((layer.attention, layer.heads), (layer.ffn, kept_neurons(layer)))
            for block, (is_kept, units), total in zip(blocks, kept, self._units, strict=True):
                uses.add(block, is_kept, units, total)
        return _total(self._inside[index] for index in plan.remaining) - uses.removed()


def _total(layers: Iterable[Mapping[int, int]]) -> int:
    """Parameters of some layers together, those that they share counted once."""
    sizes: dict[int, int] = {}
    for inside in layers:
        sizes.update(inside)
    return sum(sizes.values())


class _Uses:
    """The units of every parameter that any layer still uses."""

    def __init__(self) -> None:
        self._slices: dict[int, tuple[Slice, int]] = {}
        self._units: dict[int, set[int]] = defaultdict(set)
        self._whole: dict[int, Tensor] = {}
        self._used: set[int] = set()

    def add(self, block: BlockWeights, is_kept: bool, units: Sequence[int], total: int) -> None:
        """Add the use of a layer's block."""
        for part in (*block.inputs, block.output):
            key = id(part.parameter)
            self._slices[key] = part, total
            self._units[key].update(units)
        if block.bias is not None:
            self._note(block.bias, is_kept)
        for module in block.company:
            for parameter in module.parameters():
                self._note(parameter, bool(units))

    def _note(self, parameter: nn.Parameter, is_used: bool) -> None:
        self._whole[id(parameter)] = parameter
        if is_used:
            self._used.add(id(parameter))

    def removed(self) -> int:
        """Parameters that no layer uses any more."""
        sliced = sum(_unused(part, self._units[key], total) for key, (part, total) in self._slices.items())
        return sliced + sum(parameter.numel() for key, parameter in self._whole.items() if key not in self._used)


def _unused(part: Slice, units: set[int], total: int) -> int:
    if len(units) == total:
        return 0
    size = part.parameter.shape[part.axis]
    return (size - part.count(sorted(units), total)) * part.parameter.numel() // size

"""How many parameters a plan leaves, counted from the shapes of a whole model without building the small one."""

from collections.abc import Iterable
from typing import Any

from torch import nn

from axformer.architectures.base import Architecture
from axformer.elements import Dimensions
from axformer.plan import LayerPlan, Plan


class ParameterCount:
    """Counts the parameters that are left of one model under any plan."""

    def __init__(self, model: Any, architecture: Architecture) -> None:
        self._dimensions = architecture.dimensions(model.config)
        self._total: int = sum(parameter.numel() for parameter in model.parameters())
        self._layers = [_LayerCounts(architecture, layer, self._dimensions) for layer in architecture.layers(model)]

    def left(self, plan: Plan) -> int:
        """Parameters of the model that surgery would leave."""
        layers = zip(self._layers, plan.layers, strict=True)
        return self._total - sum(counts.removed(plan, self._dimensions) for counts, plan in layers)


class _LayerCounts:
    def __init__(self, architecture: Architecture, layer: nn.Module, dimensions: Dimensions) -> None:
        attention, ffn = architecture.layout.attention_parts(layer), architecture.layout.ffn_parts(layer)
        self._attention_bias = _bias(attention.output)
        self._head = _weights(attention.inputs, attention.output) // dimensions.heads
        self._ffn_bias = _bias(ffn.output)
        self._neuron = _weights(ffn.inputs, ffn.output) // dimensions.intermediate_size

    def removed(self, plan: LayerPlan, dimensions: Dimensions) -> int:
        heads, neurons = dimensions.heads - len(plan.heads), dimensions.intermediate_size - plan.neuron_count
        biases = (not plan.attention) * self._attention_bias + (not plan.ffn) * self._ffn_bias
        return heads * self._head + neurons * self._neuron + biases


def _weights(inputs: Iterable[nn.Linear], output: nn.Linear) -> int:
    return sum(projection.weight.numel() + _bias(projection) for projection in inputs) + output.weight.numel()


def _bias(projection: nn.Linear) -> int:
    return 0 if projection.bias is None else projection.bias.numel()

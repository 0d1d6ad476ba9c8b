"""Apply a plan to a whole model reversibly: nothing is cut; removed parts are multiplied by 0 at their output.

A head, a neuron or a whole block adds to the residual stream through its output projection, so zeros there remove it. A dropped
layer passes its input on. A search
needs this form because every change must be undone quickly. :mod:`axformer.model.surgery` applies the same plan permanently.
Both must give the same outputs; a property test checks that law.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights
from axformer.architectures.hard_attention import TOP_K_ATTRIBUTE
from axformer.plan.plan import Plan, kept_neurons


@contextmanager
def masked(model: Any, architecture: Architecture, plan: Plan) -> Iterator[None]:
    """Apply a plan to a prepared model inside the ``with`` block, and restore the model afterwards."""
    dimensions = architecture.dimensions(model.config)
    plan.check_fits(dimensions)
    architecture.check_droppable(model.config, plan)
    undo = _Undo()
    try:
        for layer, layer_plan in zip(architecture.layers(model), plan.layers, strict=True):
            if layer_plan.dropped:
                undo.set_forward(layer, partial(_pass, architecture))
                continue
            attention = architecture.attention.weights(layer)
            if layer_plan.hard_attention is not None:
                assert attention.core is not None, "attention blocks name their core"
                undo.set_top_k(attention.core, layer_plan.hard_attention)
            _mask(attention, layer_plan.attention, layer_plan.heads, dimensions.heads, undo)
            neurons = kept_neurons(layer_plan)
            _mask(architecture.ffn.weights(layer), layer_plan.ffn, neurons, dimensions.intermediate_size, undo)
        yield
    finally:
        undo.all()


class _Undo:
    """The changes and their previous values."""

    def __init__(self) -> None:
        self._parameters: list[tuple[nn.Module, str, nn.Parameter]] = []
        self._cores: list[nn.Module] = []
        self._passing: list[nn.Module] = []

    def set_parameter(self, module: nn.Module, name: str, value: Tensor) -> None:
        """Replace a parameter."""
        self._parameters.append((module, name, getattr(module, name)))
        setattr(module, name, nn.Parameter(value, requires_grad=False))

    def set_top_k(self, core: nn.Module, top_k: int) -> None:
        """Switch hard attention on."""
        setattr(core, TOP_K_ATTRIBUTE, top_k)
        self._cores.append(core)

    def set_forward(self, layer: nn.Module, forward: Callable[..., Any]) -> None:
        """Let a layer compute something else."""
        layer.forward = forward
        self._passing.append(layer)

    def all(self) -> None:
        """Restore everything."""
        for module, name, value in reversed(self._parameters):
            setattr(module, name, value)
        for core in self._cores:
            delattr(core, TOP_K_ATTRIBUTE)
        for layer in self._passing:
            del layer.forward  # its class has its own


def _pass(architecture: Architecture, hidden: Tensor, *_: Any, **__: Any) -> Any:
    """Replaces ``forward`` of a dropped layer: LayerNorms cannot be undone by zeros."""
    return architecture.returned(hidden)


def _mask(block: BlockWeights, is_kept: bool, units: Sequence[int], total: int, undo: _Undo) -> None:
    if not is_kept and block.bias is not None:
        undo.set_parameter(block.output.module, "bias", torch.zeros_like(block.bias))
    if len(units) == total:
        return
    output = block.output
    kept = torch.zeros(output.parameter.shape[output.axis], device=output.parameter.device)
    kept[output.entries(units, total).to(kept.device)] = 1
    shape = [-1 if axis == output.axis else 1 for axis in range(output.parameter.dim())]
    undo.set_parameter(output.module, output.name, output.parameter.detach() * kept.view(shape))

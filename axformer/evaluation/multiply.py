"""Fast projections for cut layers.

A cut layer multiplies with the same weights hundreds of times. On a CPU, oneDNN packs the weights once into the layout of its
kernels, and fuses the activation function of the FFN into the product.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.activations import GELUActivation, GELUTanh, NewGELUActivation
from transformers.pytorch_utils import Conv1D

from axformer.architectures.base import Architecture, BlockWeights
from axformer.architectures.hard_attention import FULL_ROWS_ATTRIBUTE
from axformer.architectures.slices import is_projection
from axformer.plan.plan import LayerPlan

ROWS = 1024
"""Number of rows that packed weights are optimised for, roughly the tokens of a batch."""
_PACKED: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
"""Packed weights in use, by parameter. Cut forms of a layer share the projections that they leave whole."""
_NOTHING = "none", "none"
_TAKEN_IN: dict[type, tuple[str, str]] = {
    GELUActivation: ("gelu", "none"),
    GELUTanh: ("gelu", "tanh"),
    NewGELUActivation: ("gelu", "tanh"),
    nn.ReLU: ("relu", "none"),
}
"""Activation functions that oneDNN can fuse into a product, with oneDNN's names for the function and its variant."""


def multiply_fast(layer: nn.Module, plan: LayerPlan, *, architecture: Architecture) -> None:
    """Let the projections of a cut layer multiply with packed weights where that is possible. This cannot be undone.

    The softmax of the attention pads short rows, which is faster.
    """
    ffn = architecture.ffn.weights(layer) if plan.neurons else None
    inner = set() if ffn is None else {id(part.module) for part in ffn.inputs}
    after = _NOTHING if ffn is None else _take_in_activation(ffn)
    core = architecture.attention.weights(layer).core if plan.heads else None
    if core is not None:
        setattr(core, FULL_ROWS_ATTRIBUTE, True)
    for module in layer.modules():
        if is_projection(module):
            module.forward = multiplier(module, after if id(module) in inner else _NOTHING)


def _take_in_activation(ffn: BlockWeights) -> tuple[str, str]:
    """Fuse the activation function into the input projection, and remove it from the layer. Returns oneDNN's name for it."""
    if ffn.activation is None or not _packs(ffn.output.parameter):
        return _NOTHING
    holder, name = ffn.activation
    after = _TAKEN_IN.get(type(getattr(holder, name)), _NOTHING)
    if after is not _NOTHING:
        setattr(holder, name, nn.Identity())
    return after


def multiplier(projection: Any, after: tuple[str, str] = _NOTHING) -> Callable[[Tensor], Tensor]:
    """The function that multiplies inputs of shape (..., inputs) with a projection's weights, giving (..., outputs).

    Args:
        after: oneDNN's name of a function of the outputs that is fused into the product.
    """
    weight = (projection.weight.T if isinstance(projection, Conv1D) else projection.weight).detach()
    bias = None if projection.bias is None else projection.bias.detach()
    if not _packs(weight):
        return partial(functional.linear, weight=weight, bias=bias)
    packed = _PACKED.get(id(projection.weight))
    if packed is None:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS)
        packed.packed_from = projection.weight  # keeps the parameter alive, so that its id is not reused
        _PACKED[id(projection.weight)] = packed
    return partial(_packed_linear, weight=packed, bias=bias, after=after)


def transposed_product(x: Tensor, y: Tensor) -> Tensor:
    """The product of the transpose of x with y, shapes (rows, a) and (rows, b), giving (a, b).

    In float32 on a CPU, oneDNN multiplies, as it does for packed projections.
    """
    if x.dtype is not torch.float32 or not _packs(x) or not x.numel() or not y.numel():
        return x.T @ y
    right = y.T.contiguous()
    left = right if x is y else x.T.contiguous()
    product: Tensor = torch.ops.mkldnn._linear_pointwise(left, right, None, _NOTHING[0], [], _NOTHING[1])
    return product


def _packed_linear(hidden: Tensor, *, weight: Tensor, bias: Tensor | None, after: tuple[str, str]) -> Tensor:
    output: Tensor = torch.ops.mkldnn._linear_pointwise(hidden, weight, bias, after[0], [], after[1])
    return output


def _packs(weight: Tensor) -> bool:
    """Whether oneDNN can multiply with a float32 weight."""
    return weight.device.type == "cpu" and bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]

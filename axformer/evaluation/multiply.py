"""Projections of cut layers that multiply as fast as the device can, and in the precision that is asked for.

A cut layer multiplies with the same weights hundreds of times. On a CPU, oneDNN packs them once into the form that its kernels
want, and takes the activation function of the FFN into the product.
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
"""What packed weights are laid out for: the tokens of a batch, about."""
_PACKED: WeakValueDictionary[tuple[int, torch.dtype], Tensor] = WeakValueDictionary()
"""Packed weights in use, by their parameter and number format: forms of a layer that leave a projection whole share them."""
_NOTHING = "none", "none"
_TAKEN_IN: dict[type, tuple[str, str]] = {
    GELUActivation: ("gelu", "none"),
    GELUTanh: ("gelu", "tanh"),
    NewGELUActivation: ("gelu", "tanh"),
    nn.ReLU: ("relu", "none"),
}
"""Activation functions that oneDNN computes within a product: its own names for them, and for how."""


def multiply_fast(layer: nn.Module, plan: LayerPlan, *, architecture: Architecture, dtype: torch.dtype) -> None:
    """Let the projections of a cut layer multiply in this number format, with packed weights on a CPU, for good.

    The softmax of its attention fills up short rows. All else of the layer stays in float32, but what is between the
    projections of an FFN, which is rounded in any case.
    """
    ffn = architecture.ffn.weights(layer) if plan.neurons else None
    inner = set() if ffn is None else {id(part.module) for part in ffn.inputs}
    after = _NOTHING if ffn is None else _take_in_activation(ffn, dtype)
    core = architecture.attention.weights(layer).core if plan.heads else None
    if core is not None:
        setattr(core, FULL_ROWS_ATTRIBUTE, True)
    for module in layer.modules():
        if is_projection(module):
            is_inner = id(module) in inner
            multiply = multiplier(module, dtype, after if is_inner else _NOTHING)
            output = dtype if is_inner else torch.float32
            module.forward = partial(_forward, multiply=multiply, dtype=dtype, output=output)


def _forward(
    hidden: Tensor, *, multiply: Callable[[Tensor], Tensor], dtype: torch.dtype, output: torch.dtype
) -> Tensor:
    return multiply(hidden.to(dtype)).to(output)


def _take_in_activation(ffn: BlockWeights, dtype: torch.dtype) -> tuple[str, str]:
    """What the input projection computes after its product; the layer does not compute it any more."""
    if ffn.activation is None or not _packs(ffn.output.parameter, dtype):
        return _NOTHING
    holder, name = ffn.activation
    after = _TAKEN_IN.get(type(getattr(holder, name)), _NOTHING)
    if after is not _NOTHING:
        setattr(holder, name, nn.Identity())
    return after


def multiplier(projection: Any, dtype: torch.dtype, after: tuple[str, str] = _NOTHING) -> Callable[[Tensor], Tensor]:
    """What multiplies inputs of shape (..., inputs) with a projection's weights, into (..., outputs).

    Args:
        after: a function of the outputs that oneDNN computes within the product, in its words.
    """
    weight = (projection.weight.T if isinstance(projection, Conv1D) else projection.weight).detach().to(dtype)
    bias = None if projection.bias is None else projection.bias.detach().to(dtype)
    if not _packs(weight, dtype):
        return partial(functional.linear, weight=weight, bias=bias)
    key = id(projection.weight), dtype
    packed = _PACKED.get(key)
    if packed is None:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS)
        packed.packed_from = projection.weight  # so that no other parameter takes its id
        _PACKED[key] = packed
    return partial(_packed_linear, weight=packed, bias=bias, after=after)


def _packed_linear(hidden: Tensor, *, weight: Tensor, bias: Tensor | None, after: tuple[str, str]) -> Tensor:
    output: Tensor = torch.ops.mkldnn._linear_pointwise(hidden, weight, bias, after[0], [], after[1])
    return output


def _packs(weight: Tensor, dtype: torch.dtype) -> bool:
    """Whether oneDNN multiplies with a weight in this number format; many processors without AVX-512 lack its bfloat16."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    return dtype is not torch.bfloat16 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())

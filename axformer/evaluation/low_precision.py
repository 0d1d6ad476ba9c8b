"""Layers whose matrix products are computed in a lower precision; all else of them stays in float32."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from axformer.architectures.base import Architecture
from axformer.architectures.slices import is_projection
from axformer.plan import LayerPlan


def low_precision(device: torch.device) -> torch.dtype:
    """The fastest number format of 16 bits on a device."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.float16
    return torch.bfloat16


def name_of(dtype: torch.dtype) -> str:
    """A number format's name, for example ``bfloat16``."""
    return str(dtype).removeprefix("torch.")


def lower(layer: nn.Module, plan: LayerPlan, *, architecture: Architecture, dtype: torch.dtype) -> None:
    """Let the projections of a layer multiply in this number format, for good.

    Between the projections of an FFN, values stay in it, as they are rounded to it in any case.
    """
    inner = {id(part.module) for part in architecture.ffn.weights(layer).inputs} if plan.neurons else set()
    for module in layer.modules():
        if is_projection(module):
            _lower(module, dtype, torch.float32 if id(module) not in inner else dtype)


def _lower(projection: Any, dtype: torch.dtype, output: torch.dtype) -> None:
    weight = projection.weight.detach()
    bias = projection.bias
    projection.forward = partial(
        _forward,
        weight=(weight.T if isinstance(projection, Conv1D) else weight).to(dtype),
        bias=None if bias is None else bias.detach().to(dtype),
        output=output,
    )


def _forward(hidden: Tensor, *, weight: Tensor, bias: Tensor | None, output: torch.dtype) -> Tensor:
    return functional.linear(hidden.to(weight.dtype), weight, bias).to(output)

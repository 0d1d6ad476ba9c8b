"""Carry out a plan on a whole model reversibly: nothing is cut, what is removed is multiplied away by hooks.

This is the form a search needs, because every change must be undone in no time. :mod:`axformer.surgery` carries out the same
plan for good. Both must give the same logits; that law has its own property test.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from axformer.architectures.base import Architecture
from axformer.hard_attention import ATTENTION_NAME, TOP_K_ATTRIBUTE
from axformer.plan import LayerPlan, Plan


@contextmanager
def masked(model: Any, architecture: Architecture, plan: Plan) -> Iterator[None]:
    """Let the model compute as the plan says inside the ``with`` block, and as before after it."""
    dimensions = architecture.dimensions(model.config)
    plan.check_fits(dimensions)
    assert model.config._attn_implementation == ATTENTION_NAME, "load the model with hard attention available"
    handles: list[RemovableHandle] = []
    cores: list[nn.Module] = []
    try:
        for layer, layer_plan in zip(architecture.layers(model), plan.layers, strict=True):
            handles += _mask_attention(architecture, layer, layer_plan, dimensions.heads)
            handles += _mask_ffn(architecture, layer, layer_plan, dimensions.intermediate_size)
            if layer_plan.hard_attention is not None:
                core = architecture.layout.attention_parts(layer).core
                setattr(core, TOP_K_ATTRIBUTE, layer_plan.hard_attention)
                cores.append(core)
        yield
    finally:
        for handle in handles:
            handle.remove()
        for core in cores:
            delattr(core, TOP_K_ATTRIBUTE)


def _mask_attention(architecture: Architecture, layer: nn.Module, plan: LayerPlan, heads: int) -> list[RemovableHandle]:
    output = architecture.layout.attention_parts(layer).output
    if not plan.attention:
        return [output.register_forward_hook(_zeros)]
    if len(plan.heads) == heads:
        return []
    kept = torch.zeros(heads)
    kept[list(plan.heads)] = 1
    return [_keep_inputs(output, kept.repeat_interleave(output.in_features // heads))]


def _mask_ffn(architecture: Architecture, layer: nn.Module, plan: LayerPlan, neurons: int) -> list[RemovableHandle]:
    output = architecture.layout.ffn_parts(layer).output
    if not plan.ffn:
        return [output.register_forward_hook(_zeros)]
    if plan.neuron_count == neurons:
        return []
    kept = torch.zeros(neurons)
    for start, stop in plan.neurons:
        kept[start:stop] = 1
    return [_keep_inputs(output, kept)]


def _zeros(_: nn.Module, __: tuple[Tensor, ...], output: Tensor) -> Tensor:
    return torch.zeros_like(output)


def _keep_inputs(projection: nn.Linear, kept: Tensor) -> RemovableHandle:
    mask = kept.to(projection.weight)

    def hook(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (inputs[0] * mask,)

    return projection.register_forward_pre_hook(hook)

"""Carry out a plan on a model for good: rows and columns of removed heads and neurons are cut, removed blocks disappear."""

from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture
from axformer.elements import Dimensions
from axformer.hard_attention import TOP_K_ATTRIBUTE
from axformer.plan import LayerPlan, Plan


def operate(model: Any, architecture: Architecture, plan: Plan) -> None:
    """Remove from a whole model, in place, everything that the plan does not keep.

    Raises:
        PlanError: the plan is one of another model.
    """
    dimensions = architecture.dimensions(model.config)
    plan.check_fits(dimensions)
    for layer, layer_plan in zip(architecture.layers(model), plan.layers, strict=True):
        _cut_attention(architecture, layer, layer_plan, dimensions)
        _cut_ffn(architecture, layer, layer_plan, dimensions)


def _cut_attention(architecture: Architecture, layer: nn.Module, plan: LayerPlan, dimensions: Dimensions) -> None:
    parts = architecture.layout.attention_parts(layer)
    if not plan.attention:
        architecture.layout.remove_attention(layer, None)
        return
    if not plan.heads:
        architecture.layout.remove_attention(layer, parts.output.bias)
        return
    if plan.hard_attention is not None:
        setattr(parts.core, TOP_K_ATTRIBUTE, plan.hard_attention)
    if len(plan.heads) < dimensions.heads:
        size = parts.output.in_features // dimensions.heads
        kept = torch.cat([torch.arange(head * size, (head + 1) * size) for head in plan.heads])
        _keep(parts.inputs, parts.output, kept)
        architecture.layout.set_head_count(layer, len(plan.heads))


def _cut_ffn(architecture: Architecture, layer: nn.Module, plan: LayerPlan, dimensions: Dimensions) -> None:
    parts = architecture.layout.ffn_parts(layer)
    if not plan.ffn:
        architecture.layout.remove_ffn(layer, None)
    elif not plan.neurons:
        architecture.layout.remove_ffn(layer, parts.output.bias)
    elif plan.neuron_count < dimensions.intermediate_size:
        _keep(parts.inputs, parts.output, torch.cat([torch.arange(start, stop) for start, stop in plan.neurons]))


def _keep(inputs: tuple[nn.Linear, ...], output: nn.Linear, kept: Tensor) -> None:
    """Keep some rows of the projections in, and the same columns of the projection out."""
    kept = kept.to(output.weight.device)
    for projection in inputs:
        projection.weight = _part(projection.weight, kept, 0)
        if projection.bias is not None:
            projection.bias = _part(projection.bias, kept, 0)
        projection.out_features = len(kept)
    output.weight = _part(output.weight, kept, 1)
    output.in_features = len(kept)


def _part(parameter: Tensor, kept: Tensor, dimension: int) -> nn.Parameter:
    return nn.Parameter(parameter.detach().index_select(dimension, kept), requires_grad=parameter.requires_grad)

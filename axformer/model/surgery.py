"""Apply a plan to a model permanently: take out dropped layers, cut the rows and columns of removed heads and neurons, and drop
removed blocks."""

from copy import deepcopy
from functools import partial
from types import MethodType
from typing import Any

from torch import nn

from axformer.architectures.base import Architecture
from axformer.architectures.hard_attention import TOP_K_ATTRIBUTE
from axformer.plan.elements import Dimensions
from axformer.plan.plan import LayerPlan, Plan, kept_neurons

PER_LAYER = ("layer_types",)
"""Keys of configs that hold one entry per layer."""
PLACE = "layer_idx"
"""Attribute of modules that know the number of their layer, by which they find their keys and values in a cache."""


def operate(model: Any, architecture: Architecture, plan: Plan) -> None:
    """Remove from a whole, prepared model, in place, everything that the plan does not keep.

    Raises:
        PlanError: the plan is one of another model, or drops layers that the model cannot do without.
    """
    dimensions = architecture.dimensions(model.config)
    plan.check_fits(dimensions)
    drop_layers(model, architecture, plan)
    remaining = plan.of_remaining()
    for layer, layer_plan in zip(architecture.layers(model), remaining.layers, strict=True):
        operate_on_layer(architecture, layer, layer_plan, dimensions)
    architecture.finish(model, remaining)


def operate_on_layer(architecture: Architecture, layer: nn.Module, plan: LayerPlan, dimensions: Dimensions) -> None:
    """Remove from one layer of a whole, prepared model what its plan does not keep."""
    _cut_attention(architecture, layer, plan, dimensions)
    _cut_ffn(architecture, layer, plan, dimensions)


def _cut_attention(architecture: Architecture, layer: nn.Module, plan: LayerPlan, dimensions: Dimensions) -> None:
    block = architecture.attention.weights(layer)
    if not plan.heads:
        architecture.attention.remove(layer, block.bias if plan.attention else None)
        return
    if plan.hard_attention is not None:
        assert block.core is not None, "attention blocks name their core"
        setattr(block.core, TOP_K_ATTRIBUTE, plan.hard_attention)
    if len(plan.heads) < dimensions.heads:
        block.keep(plan.heads, dimensions.heads)
        architecture.attention.keep_heads(layer, plan.heads, dimensions.heads)


def _cut_ffn(architecture: Architecture, layer: nn.Module, plan: LayerPlan, dimensions: Dimensions) -> None:
    block = architecture.ffn.weights(layer)
    if not plan.neurons:
        architecture.ffn.remove(layer, block.bias if plan.ffn else None)
    elif plan.neuron_count < dimensions.intermediate_size:
        block.keep(kept_neurons(plan), dimensions.intermediate_size)


def drop_layers(model: Any, architecture: Architecture, plan: Plan) -> None:
    """Take the dropped layers out of a whole, prepared model, in place. The others move down, each with its own settings.

    Raises:
        PlanError: the model cannot do without these layers.
    """
    if not plan.dropped:
        return
    architecture.check_droppable(model.config, plan)
    layers: Any = architecture.layers(model)
    for index in reversed(plan.dropped):
        del layers[index]
    for place, layer in enumerate(layers):
        for module in layer.modules():
            if hasattr(module, PLACE):
                setattr(module, PLACE, place)
    config = model.config
    for name in PER_LAYER:
        values = getattr(config, name, None)
        if values is not None:
            setattr(config, name, [values[index] for index in plan.remaining])
    config.num_hidden_layers = len(plan.remaining)
    architecture.shorten(model, plan)


def twin(module: nn.Module) -> nn.Module:
    """A module with parts of its own and the same parameters, buffers and config, in a seventh of the time of a deep copy.

    Changes of its parts and settings leave the module as it is. Where a part holds a function of another, as of accelerate's
    hooks, it is copied deeply, so that its functions are those of its own parts.
    """
    settings = [setting for part in module.modules() for setting in vars(part).items()]
    if any(isinstance(value, MethodType | partial) for _, value in settings):
        configs = (value for name, value in settings if name == "config")
        return deepcopy(module, {id(one): one for one in (*module.parameters(), *module.buffers(), *configs)})
    return _twin(module, {})


def _twin(module: nn.Module, made: dict[nn.Module, nn.Module]) -> nn.Module:
    if module not in made:
        made[module] = own = module.__new__(type(module))
        state: dict[str, Any] = module.__getstate__()  # type: ignore[no-untyped-call] # without what calls the module, compiled
        for name, value in state.items():
            vars(own)[name] = value.copy() if isinstance(value, dict | set) else value
        own._modules.update((name, _twin(part, made)) for name, part in module._modules.items() if part is not None)
    return made[module]

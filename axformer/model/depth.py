"""Take dropped layers out of a model: what is left is an ordinary, shallower model of its family."""

from typing import Any

from torch import nn

from axformer.architectures.base import Architecture
from axformer.plan.plan import Plan

PER_LAYER = ("layer_types",)
"""Keys of configs that hold one entry per layer."""
PLACE = "layer_idx"
"""Attribute of modules that know the number of their layer, by which they find their keys and values in a cache."""


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
    _number(layers)
    config = model.config
    for name in PER_LAYER:
        values = getattr(config, name, None)
        if values is not None:
            setattr(config, name, [values[index] for index in plan.remaining])
    config.num_hidden_layers = len(plan.remaining)
    architecture.shorten(model, plan)


def _number(layers: nn.ModuleList) -> None:
    for place, layer in enumerate(layers):
        for module in layer.modules():
            if hasattr(module, PLACE):
                setattr(module, PLACE, place)

"""Layers cut as in a plan, copied from a whole model that is not changed.

A trial then computes only what is left. Removed parts cost nothing from the trial that removes them onwards, so a pass becomes
faster as it goes on.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from axformer.architectures.base import Architecture
from axformer.evaluation.changes import Units
from axformer.model.surgery import operate_on_layer, twin
from axformer.plan.plan import LayerPlan, Plan

Convert = Callable[[int, nn.Module, LayerPlan], None]
"""Changes a layer that was cut as in its plan; the first argument is the layer's number."""


def leave(index: int, layer: nn.Module, plan: LayerPlan) -> None:
    """Leave the cut layer as it is."""


class CutLayers:
    """Returns a model's layers under any plan. The last two forms of each layer are cached."""

    def __init__(self, model: Any, architecture: Architecture, convert: Convert = leave) -> None:
        self._model = model
        self._architecture = architecture
        self._convert = convert
        self._dimensions = architecture.dimensions(model.config)
        self._cut: dict[int, list[tuple[LayerPlan, nn.Module]]] = {}

    def get(self, plan: Plan) -> list[nn.Module]:
        """All layers under the plan. Weights that are left whole are shared with the model."""
        return [self.one(index, layer) for index, layer in enumerate(plan.layers)]

    def one(self, index: int, plan: LayerPlan) -> nn.Module:
        """Layer number ``index`` under its plan."""
        kept = self._cut.setdefault(index, [])
        for known, layer in kept:
            if known == plan:
                return layer
        layer = self._carve(index, plan)
        self._convert(index, layer, plan)
        self._cut[index] = [*kept[-1:], (plan, layer)]
        return layer

    def forget(self, index: int) -> None:
        """Let go of the cached forms of a layer."""
        self._cut.pop(index, None)

    def alone(self, units: Units) -> nn.Module:
        """A layer whose block has only these heads or neurons, and no bias."""
        layer = self._carve(units.block.layer, units.plan)
        weights = self._architecture.layout(units.block).weights(layer)
        if weights.bias is not None:
            weights.output.module.bias = nn.Parameter(torch.zeros_like(weights.bias), requires_grad=False)
        return layer

    def _carve(self, index: int, plan: LayerPlan) -> nn.Module:
        if plan.dropped:
            return nn.Identity()
        layer = twin(self._architecture.layers(self._model)[index])
        operate_on_layer(self._architecture, layer, plan, self._dimensions)
        return layer

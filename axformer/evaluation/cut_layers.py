"""Layers as a plan leaves them, cut out of a whole model that stays as it is: a trial then pays for what is left only.

What is removed costs nothing from the trial on that removes it, so a pass speeds up as it goes.
"""

from copy import deepcopy
from typing import Any

from torch import nn

from axformer.architectures.base import Architecture
from axformer.plan import LayerPlan, Plan
from axformer.surgery import operate_on_layer


class CutLayers:
    """Gives a model's layers under any plan. Of each layer the last form that was asked for is kept."""

    def __init__(self, model: Any, architecture: Architecture) -> None:
        self._model = model
        self._architecture = architecture
        self._dimensions = architecture.dimensions(model.config)
        self._cut: dict[int, tuple[LayerPlan, nn.Module]] = {}

    def get(self, plan: Plan) -> list[nn.Module]:
        """All layers as the plan leaves them. They share every weight that is left whole with the model."""
        return [self._layer(index, layer) for index, layer in enumerate(plan.layers)]

    def _layer(self, index: int, plan: LayerPlan) -> nn.Module:
        kept = self._cut.get(index)
        if kept is None or kept[0] != plan:
            kept = self._cut[index] = plan, self._carve(index, plan)
        return kept[1]

    def _carve(self, index: int, plan: LayerPlan) -> nn.Module:
        whole = self._architecture.layers(self._model)[index]
        shared = {id(parameter): parameter for parameter in whole.parameters()}
        layer = deepcopy(whole, shared | {id(self._model.config): self._model.config})
        operate_on_layer(self._architecture, layer, plan, self._dimensions)
        return layer

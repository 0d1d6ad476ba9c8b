"""A fitted plan carried out on a whole model reversibly: what was removed is zeros in place, and fitted weights stand at the
columns that stay. The model keeps its shapes, so it is a checkpoint of its family like any other.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights
from axformer.model.masking import masked
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan, kept_neurons
from axformer.repair.refit import Refit, shaped_like


@contextmanager
def masked_and_fitted(model: Any, architecture: Architecture, plan: Plan, fits: Refit) -> Iterator[None]:
    """Let a prepared model compute inside the ``with`` block what the fitted compact model does, and as before after it.

    Raises:
        PlanError: the plan is one of another model.
    """
    dimensions, layers = architecture.dimensions(model.config), architecture.layers(model)
    with masked(model, architecture, plan), ExitStack() as undo:
        for block, fit in fits.items():
            weights = architecture.layout(block).weights(layers[block // 2])
            if fit.weight is not None:  # without columns the plan alone makes zeros of all
                wide = _widened(fit.weight, weights, plan, block, dimensions)
                _set(undo, weights.output.module, weights.output.name, wide)
            if fit.bias is not None and weights.bias is not None:
                _set(undo, weights.output.module, "bias", fit.bias.to(weights.bias.device, weights.bias.dtype))
        yield


def _widened(fitted: Tensor, weights: BlockWeights, plan: Plan, block: int, dimensions: Dimensions) -> Tensor:
    """The whole output projection with a fitted matrix at the columns that stay, zeros at the others."""
    output, layer = weights.output, plan.layers[block // 2]
    units = kept_neurons(layer) if block % 2 else layer.heads
    total = dimensions.intermediate_size if block % 2 else dimensions.heads
    whole = torch.zeros_like(output.parameter)
    places = output.entries(units, total).to(whole.device)
    return whole.index_copy(output.axis, places, shaped_like(fitted, weights).to(whole.device, whole.dtype))


def _set(undo: ExitStack, module: nn.Module, name: str, value: Tensor) -> None:
    undo.callback(setattr, module, name, getattr(module, name))
    setattr(module, name, nn.Parameter(value, requires_grad=False))

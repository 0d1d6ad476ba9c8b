"""Apply a fitted plan to a whole model reversibly.

Removed parts become zeros in place, and the remaining columns get their fitted weights. The model keeps its shapes, so it is an
ordinary checkpoint of its family.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights
from axformer.model.masking import masked
from axformer.plan.blocks import Block
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan
from axformer.repair.refit import Refit, shaped_like


@contextmanager
def masked_and_fitted(model: Any, architecture: Architecture, plan: Plan, fits: Refit) -> Iterator[None]:
    """Inside the ``with`` block, a prepared model computes the same as the fitted compact model.

    Raises:
        PlanError: the plan belongs to another model.
    """
    dimensions, layers = architecture.dimensions(model.config), architecture.layers(model)
    with masked(model, architecture, plan), ExitStack() as undo:
        for block, fit in fits.items():
            weights = architecture.layout(block).weights(layers[block.layer])
            if fit.weight is not None:  # without columns, masking has zeroed everything already
                wide = _widened(fit.weight, weights, plan, block, dimensions)
                _set(undo, weights.output.module, weights.output.name, wide)
            if fit.bias is not None and weights.bias is not None:
                _set(undo, weights.output.module, "bias", fit.bias.to(weights.bias.device, weights.bias.dtype))
        yield


def _widened(fitted: Tensor, weights: BlockWeights, plan: Plan, block: Block, dimensions: Dimensions) -> Tensor:
    """The whole output projection, with the fitted matrix at the remaining columns and zeros at the others."""
    output = weights.output
    whole = torch.zeros_like(output.parameter)
    columns = output.entries(block.units(plan), block.size(dimensions)).to(whole.device)
    return whole.index_copy(output.axis, columns, shaped_like(fitted, weights).to(whole.device, whole.dtype))


def _set(undo: ExitStack, module: nn.Module, name: str, value: Tensor) -> None:
    undo.callback(setattr, module, name, getattr(module, name))
    setattr(module, name, nn.Parameter(value, requires_grad=False))

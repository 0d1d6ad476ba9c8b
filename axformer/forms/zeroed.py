"""The zeroed form: a model with its original shapes, which stock transformers loads without this package.

Removed parts add nothing, because their output weights are 0; the remaining columns have their fitted weights. Dropped layers
are taken out; otherwise the form is neither smaller nor faster. It is for users who cannot install this package.
"""

from copy import deepcopy
from typing import Any

from axformer.architectures.base import Architecture
from axformer.errors import FormError
from axformer.model.compact import needs_hard_attention, stock_attention
from axformer.model.surgery import drop_layers
from axformer.plan.plan import Plan
from axformer.repair.in_place import masked_and_fitted
from axformer.repair.refit import Refit, of_remaining


def zeroed(model: Any, architecture: Architecture, plan: Plan, fits: Refit | None = None) -> Any:
    """The whole model with zeros in place of everything that a plan removes, of the family's own class, in evaluation mode.

    Args:
        model: prepared; it is not changed.
        fits: the fitted weights of the plan; None if the remaining weights are the model's own.

    Raises:
        FormError: a layer has hard attention, which stock transformers lacks, or layers share weights, so that one layer still
            needs what another has lost.
        PlanError: the plan belongs to another model.
    """
    if plan.dropped:
        model, fits, plan = _without_dropped(model, architecture, plan, fits or {})
    hard = [index for index, layer in enumerate(plan.layers) if layer.hard_attention is not None]
    if needs_hard_attention(plan):
        raise FormError(
            f"there is no zeroed form with hard attention (layers {', '.join(map(str, hard))}), which transformers by itself "
            "does not compute; take the compact or the ONNX form, or run the pass with attention_top_k=null"
        )
    if _layers_share_weights(model, architecture) and plan != Plan.full(architecture.dimensions(model.config)):
        raise FormError(
            f"there is no zeroed form of {architecture.model_type}: its layers share their weights, and what one layer has "
            "lost another needs; take the compact or the ONNX form"
        )
    config = deepcopy(model.config)
    config._attn_implementation = stock_attention(model)
    stock = model.__class__(config).to(model.device).eval()
    names = stock.state_dict().keys()
    with masked_and_fitted(model, architecture, plan, fits or {}):
        weights = {name: values for name, values in model.state_dict().items() if name in names}
        stock.load_state_dict(weights)
    return stock


def _without_dropped(model: Any, architecture: Architecture, plan: Plan, fits: Refit) -> tuple[Any, Refit, Plan]:
    """A copy of the model without the dropped layers, whose norms zeros cannot undo, and the fits and plan of the others."""
    twin = deepcopy(model)
    drop_layers(twin, architecture, plan)
    return twin, of_remaining(fits, plan), plan.of_remaining()


def _layers_share_weights(model: Any, architecture: Architecture) -> bool:
    layers = architecture.layers(model)
    parameters = [id(parameter) for layer in layers for parameter in layer.parameters()]
    return len(set(parameters)) < len(parameters)

"""The zeroed form: a model of the shapes that it always had, which stock transformers loads without this package.

What was removed adds nothing, because the weights that lead out of it are 0; weights that were fitted stand at the columns
that stay. It is neither smaller nor faster; it is for those who cannot install anything beside the model.
"""

from copy import deepcopy
from typing import Any

from axformer.architectures.base import Architecture
from axformer.errors import FormError
from axformer.model.compact import needs_hard_attention, stock_attention
from axformer.plan.plan import Plan
from axformer.repair.in_place import masked_and_fitted
from axformer.repair.refit import Refit


def zeroed(model: Any, architecture: Architecture, plan: Plan, fits: Refit | None = None) -> Any:
    """The whole model with zeros where a plan removes something, of the family's own class, in evaluation mode.

    Args:
        model: prepared; it is left as it is.
        fits: the weights that were fitted to the plan; None where those that stay are the model's own.

    Raises:
        FormError: some layer has hard attention, which stock transformers lacks; or layers share weights, and what one has
            lost another still needs.
        PlanError: the plan is one of another model.
    """
    hard = [index for index, layer in enumerate(plan.layers) if layer.hard_attention is not None]
    if needs_hard_attention(plan):
        raise FormError(
            f"there is no zeroed form with hard attention (layers {', '.join(map(str, hard))}), which transformers by itself "
            "does not compute; take the compact or the ONNX form, or run the pass with hard_attention=false"
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


def _layers_share_weights(model: Any, architecture: Architecture) -> bool:
    layers = architecture.layers(model)
    parameters = [id(parameter) for layer in layers for parameter in layer.parameters()]
    return len(set(parameters)) < len(parameters)

"""Put the weights of a compact model back into the whole model that it was cut from."""

from copy import deepcopy
from typing import Any

import torch

from axformer.architectures.base import Architecture
from axformer.model.surgery import operate
from axformer.plan.plan import Plan


def put_back(model: Any, architecture: Architecture, plan: Plan, small: Any) -> Any:
    """A copy of a whole, prepared model with the weights of a compact one; what the plan removes is as in the whole model.

    A model whose weights are their own places is cut like the whole one, so what it then holds says where each weight belongs,
    for any family and plan. It takes eight bytes for each weight meanwhile.

    Args:
        model: the whole model, which is not changed.
        architecture: its family, whose layers have weights of their own.
        plan: the plan.
        small: the compact model of the plan, with other weights.
    """
    whole, places = deepcopy(model), deepcopy(model)
    first = 0
    for place in places.parameters():
        place.requires_grad_(False)
        place.data = torch.arange(first, first + place.numel(), device=place.device).view_as(place)
        first += place.numel()
    operate(places, architecture, plan)
    flat = torch.cat([weight.detach().flatten() for weight in whole.parameters()])
    values = dict(small.named_parameters(remove_duplicate=False))
    for name, place in places.named_parameters():
        flat[place.flatten()] = values[name].detach().flatten()
    parts = torch.split(flat, [weight.numel() for weight in whole.parameters()])
    for weight, part in zip(whole.parameters(), parts, strict=True):
        weight.data.copy_(part.view_as(weight))
    return whole

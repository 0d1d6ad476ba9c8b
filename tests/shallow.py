"""Models with fewer layers, built by transformers from a config and given the weights of the layers that are kept."""

import re
from collections.abc import Iterator
from typing import Any

import torch

from tests.tiny_families import DIMENSIONS

LAYER = re.compile(r"(?P<list>.*\.(?:layer|layers|h)\.|^(?:layers|h)\.)(?P<index>\d+)(?P<rest>\..*)")
GROUP = re.compile(r"(?P<list>.*\.albert_layer_groups\.)(?P<index>\d+)(?P<rest>\..*)")


def shallow(whole: Any, kept: list[int], **changes: Any) -> Any:
    """The model that transformers builds with fewer layers, with the weights of the layers that are kept."""
    config, changes = whole.config, {"num_hidden_layers": len(kept)} | changes
    if getattr(config, "layer_types", None) is not None:
        changes["layer_types"] = [config.layer_types[index] for index in kept]
    pattern, places = LAYER, kept
    if config.model_type == "albert":
        owners = [index * config.num_hidden_groups // config.num_hidden_layers for index in kept]
        pattern, places = GROUP, sorted(set(owners))
        changes["num_hidden_groups"] = len(places)
    knowledge = config.to_dict() | changes
    model = whole.__class__(type(config)(**knowledge)).eval()
    model.load_state_dict(dict(_renamed(whole.state_dict(), pattern, places)))
    return model


def _renamed(
    weights: dict[str, torch.Tensor], pattern: re.Pattern[str], kept: list[int]
) -> Iterator[tuple[str, torch.Tensor]]:
    for name, values in weights.items():
        found = pattern.fullmatch(name)
        if found is None:
            yield name, values
        elif int(found["index"]) in kept:
            yield f"{found['list']}{kept.index(int(found['index']))}{found['rest']}", values


def kept_without(dropped: tuple[int, ...]) -> list[int]:
    return [index for index in range(DIMENSIONS.layers) if index not in dropped]

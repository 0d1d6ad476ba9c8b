"""Exclude layers and embeddings from training, in any family."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from axformer.architectures.base import Architecture
from axformer.errors import ConfigError
from axformer.plan.plan import Plan
from axformer.wire.finetuning import FinetuneSettings


def check_freezes(model: Any, architecture: Architecture, settings: FinetuneSettings) -> None:
    """Check that a whole model has the layers that are not to be trained.

    Raises:
        ConfigError: a layer does not exist, or layers share their weights, so that none can be excluded by itself.
    """
    layers, wanted = architecture.layers(model), settings.frozen_layers()
    if not wanted:
        return
    if wanted[-1] >= len(layers):
        raise ConfigError(
            f"finetune freeze={settings.freeze!r}: the model has {len(layers)} layers, numbered from 0 to {len(layers) - 1}"
        )
    owners = [{id(weight) for weight in layer.parameters()} for layer in layers]
    if sum(map(len, owners)) > len(set().union(*owners)):
        raise ConfigError(
            f"finetune freeze={settings.freeze!r}: the layers of models of type '{architecture.model_type}' share their "
            "weights, so none can be left out of the training; leave freeze out"
        )


@contextmanager
def frozen(model: Any, architecture: Architecture, plan: Plan, settings: FinetuneSettings) -> Iterator[None]:
    """Inside the ``with`` block, the excluded weights of a compact model need no gradients.

    Args:
        model: the compact model of the plan.
        architecture: its family.
        plan: says which layers of the untouched model it still has.
        settings: what is excluded.
    """
    layers, wanted = architecture.layers(model), set(settings.frozen_layers())
    modules = [layers[place] for place, layer in enumerate(plan.remaining) if layer in wanted]
    modules += embeddings(model) if settings.freezes_embeddings else []
    excluded = [weight for module in modules for weight in module.parameters() if weight.requires_grad]
    for weight in excluded:
        weight.requires_grad = False
    try:
        yield
    finally:
        for weight in excluded:
            weight.requires_grad = True


def embeddings(model: Any) -> list[nn.Module]:
    """The modules that turn tokens and positions into the first layer's input.

    In every family these are the child of the base model that holds the word embeddings, with the norm that may be in it, and
    any other child that is an embedding.
    """
    words = model.get_input_embeddings()
    return [
        child
        for child in model.base_model.children()
        if isinstance(child, nn.Embedding) or any(module is words for module in child.modules())
    ]

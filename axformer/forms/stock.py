"""The stock form: an ordinary checkpoint, as small as the compact form, which transformers loads without this package.

A configuration of transformers gives all layers of a model the same size. So a model has this form if its plan drops whole
layers, or cuts all layers alike. Its weights are those of the compact form under the same names, trained or fitted ones too.
"""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from axformer.architectures.base import Architecture
from axformer.architectures.embedder import embedder_class, plain_class, spec_of
from axformer.errors import ArtifactError, FormError
from axformer.model.compact import NOT_OF_THE_FAMILY, stock_attention
from axformer.plan.plan import LayerPlan, Plan


def stock(model: Any, family: Any, architecture: Architecture, plan: Plan) -> Any:
    """The same model as one of the family's own class, in evaluation mode on the same device, in PyTorch's default dtype.

    Args:
        model: the compact model of the plan.
        family: the class of the whole model.
        architecture: its family.
        plan: the plan.

    Raises:
        FormError: no configuration of the family describes the model.
    """
    config = _config(model, architecture, plan)
    ordinary = family(config).to(model.device).eval()
    weights, shapes = model.state_dict(), {name: values.shape for name, values in ordinary.state_dict().items()}
    if any(weights[name].shape != shape for name, shape in shapes.items()):
        raise _refused("layers that share their weights keep different parts of them")
    ordinary.load_state_dict({name: weights[name] for name in shapes})
    if model.can_generate():
        ordinary.generation_config = deepcopy(model.generation_config)
    return ordinary


def load(directory: Path, device: str) -> Any:
    """Load an ordinary checkpoint without the model classes of this package, in its own number format and in evaluation mode.

    Raises:
        ArtifactError: the configuration names no model class of transformers.
    """
    config = AutoConfig.from_pretrained(directory, local_files_only=True)
    names = config.architectures or []
    found = next((name for name in names if hasattr(transformers, name)), None)
    if found is None:
        raise ArtifactError(f"'{directory}' names no model class of transformers ({', '.join(names) or 'none at all'})")
    family = getattr(transformers, found)
    model = (family if spec_of(config) is None else embedder_class(family)).from_pretrained(
        directory, config=config, dtype="auto", local_files_only=True, use_safetensors=True
    )
    return model.to(device).eval()


def family_keys(model: Any, head: Any, architecture: Architecture, plan: Plan) -> dict[str, Any]:
    """The ``config.json`` of a model as one of its family, for loaders that read it and then run a graph.

    Sizes are true where a configuration can say them: the number of layers always, heads and neurons where all layers have
    equally many. Otherwise they are those of the whole model.

    Args:
        model: compact or whole.
        head: the class of the whole model.
        architecture: its family.
        plan: the plan of the model.
    """
    try:
        sizes = _sizes(model.config, architecture, plan.of_remaining())
    except FormError:
        sizes = {}
    config = _family_config(model, architecture, sizes)
    config.dtype, config.architectures = torch.float32, [plain_class(head).__name__]
    keys: dict[str, Any] = json.loads(config.to_json_string())
    return keys


def _config(model: Any, architecture: Architecture, plan: Plan) -> PreTrainedConfig:
    """The configuration of a compact model as one of its family."""
    return _family_config(model, architecture, _sizes(model.config, architecture, plan.of_remaining()))


def _family_config(model: Any, architecture: Architecture, sizes: Mapping[str, int]) -> PreTrainedConfig:
    knowledge = model.config.to_dict() | sizes
    for name in (*NOT_OF_THE_FAMILY, "axformer_layers"):
        knowledge.pop(name, None)
    config = CONFIG_MAPPING[architecture.model_type](**knowledge)
    config._attn_implementation = stock_attention(model)
    return config


def _sizes(config: Any, architecture: Architecture, plan: Plan) -> dict[str, int]:
    """What the configuration says of the sizes of layers, where they are not those of the whole model."""
    whole, sizes = architecture.dimensions(config), dict[str, int]()
    _check_whole_blocks(plan.layers)
    neurons = {layer.neuron_count for layer in plan.layers}
    if len(neurons) > 1:
        raise _refused(f"its layers keep {min(neurons):,} to {max(neurons):,} neurons, not all equally many")
    if neurons != {whole.intermediate_size}:
        sizes[architecture.neurons_key] = neurons.pop()
    if any(len(layer.heads) < whole.heads for layer in plan.layers):
        heads = architecture.fewer_heads(config, plan)
        if heads is None:
            raise _refused("its layers have lost heads, and not all layers have what a configuration can say of that")
        sizes |= heads
    return sizes


def _check_whole_blocks(layers: Sequence[LayerPlan]) -> None:
    if any(layer.hard_attention is not None for layer in layers):
        raise _refused("transformers by itself does not compute hard attention")
    if any(not layer.heads or not layer.neurons for layer in layers):
        raise _refused("a layer has lost its attention block or its FFN block, and not both with their norms")


def _refused(reason: str) -> FormError:
    return FormError(f"there is no stock form of this model: {reason}; take the compact or the ONNX form")

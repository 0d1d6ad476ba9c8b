"""Check a model and a tokenizer in memory: unwrap a wrapped model, and refuse other types by name."""

import os
import sys
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from axformer.architectures.heads import Head
from axformer.errors import CheckpointError, WrongTypeError
from axformer.intake.weights import some

_PLAIN_SWITCHES = {
    "return_dict": True,  # outputs are read by their names
    "output_hidden_states": False,
    "output_attentions": False,
    "chunk_size_feed_forward": 0,
    "gradient_checkpointing": False,
}
"""Switches of configurations and modules, with their values in a pass."""
_LOAD = "load it first, for example with AutoModelForSequenceClassification.from_pretrained(...)"


def model_in(given: Any) -> PreTrainedModel:
    """The given transformers model, unwrapped from ``torch.compile``, ``DataParallel`` and ``DistributedDataParallel``.

    Raises:
        WrongTypeError: it is not a transformers model, or its weights are not all present as plain numbers.
    """
    model = given
    while (inner := _inside(model)) is not None:
        model = inner
    if hasattr(model, "peft_config") or getattr(model, "_hf_peft_config_loaded", False):
        raise WrongTypeError(
            "the model has adapters of PEFT beside its weights; merge them first: model = model.merge_and_unload()"
        )
    if not isinstance(model, PreTrainedModel):
        raise WrongTypeError(f"the model is {_what(model)}")
    if getattr(model, "is_quantized", False):
        raise WrongTypeError(
            "the model is quantized, and its weights cannot be cut; load it without quantization_config"
        )
    if any(parameter.is_meta for parameter in model.parameters()):
        raise WrongTypeError("weights of the model are not in memory; load it without device_map")
    return model


def is_sentence_transformer(given: Any) -> bool:
    """Whether the object is a SentenceTransformer, whose package is then imported."""
    package = sys.modules.get("sentence_transformers")
    return package is not None and isinstance(given, package.SentenceTransformer)


def without_autocast(model: Any) -> Any:
    """The same model, computing in its own precision: Accelerate leaves a ``forward`` in a model that it trained in 16 bits."""
    if model.__dict__.pop("_original_forward", None) is not None:
        model.__dict__.pop("forward", None)
    return model


def with_plain_switches(model: Any) -> Any:
    """The same model without switches that only change how its outputs are computed or given back."""
    for module in (model.config, *model.modules()):
        for name, value in _PLAIN_SWITCHES.items():
            if name in module.__dict__:
                setattr(module, name, value)
    return model


def check_weights(model: PreTrainedModel, head: Head) -> None:
    """Check that a model has the weights that its configuration describes, since results are built from the configuration.

    Raises:
        CheckpointError: layers were taken out, or modules were replaced or added; the message names their weights.
    """
    with torch.device("meta"):
        described = head.model_class(deepcopy(model.config))
    wanted, found = map(_shapes, (described, model))
    unlike = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if unlike:
        raise CheckpointError(
            f"the model is not what its configuration describes, a {head.name} with other weights: {some(unlike)}; if layers "
            "were taken out, set model.config.num_hidden_layers; modules of other forms than transformers' are not supported"
        )


def check_tokenizer(tokenizer: Any) -> None:
    """Check that the object is a transformers tokenizer.

    Raises:
        WrongTypeError: it is something else.
    """
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise WrongTypeError(
            f"the tokenizer is {_named(tokenizer)}; give the one that the model was fine-tuned with, for example from "
            "AutoTokenizer.from_pretrained(...)"
        )


def _shapes(model: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in model.named_parameters(remove_duplicate=False)}


def _inside(model: Any) -> Any:
    """The model inside a wrapper; None if it is not a wrapper."""
    if isinstance(model, torch.nn.DataParallel | DistributedDataParallel):
        return model.module
    return getattr(model, "_orig_mod", None)


def _what(given: Any) -> str:
    """Describe what was given instead of a model, and what to give."""
    match given:
        case None:
            return f"None; {_LOAD}"
        case str() | os.PathLike():
            return f"the path '{os.fspath(given)}'; {_LOAD}, or use the command axformer prune"
        case type():
            return f"the class {given.__name__}; {_LOAD}"
        case Mapping() if any(isinstance(value, torch.Tensor) for value in given.values()):
            return "a state dict; put it into a model first, with model.load_state_dict(...)"
    if isinstance(getattr(given, "model", None), PreTrainedModel):
        return f"{_named(given)}; give the transformers model in it, its attribute model"
    return f"{_named(given)}, and not a model of transformers"


def _named(given: Any) -> str:
    return "None" if given is None else f"of type {type(given).__module__}.{type(given).__qualname__}"

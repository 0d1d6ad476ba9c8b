"""Tiny real models of every family: random weights, hidden size 32, made in milliseconds."""

from functools import cache
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from axformer.architectures.registry import architecture_of
from axformer.plan.elements import Dimensions
from tests.tiny_models import SPECIAL, WORDS, tiny_tokenizer

DIMENSIONS = Dimensions(layers=4, heads=4, hidden_size=32, intermediate_size=48)
MAX_POSITIONS = 64
_DEBERTA = {
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "position_biased_input": False,
    "norm_rel_ebd": "layer_norm",
    "position_buckets": 8,
    "conv_kernel_size": 3,
}
_SPECIFIC: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 16, "num_hidden_groups": 2},
    "deberta-v2": _DEBERTA,
    "electra": {"embedding_size": 16},
    "llama": {"num_key_value_heads": 2},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 8},
    "xlnet": {"d_head": 8},
}
_INTERMEDIATE_SIZE = {"distilbert": "hidden_dim", "gpt2": "n_inner", "xlnet": "d_inner"}
_ENDLESS = {"xlnet"}


def tiny_family_config(family: str, **changes: Any) -> Any:
    """The configuration of a tiny model of a family."""
    knowledge = {
        "vocab_size": len(SPECIAL) + len(WORDS),
        "hidden_size": DIMENSIONS.hidden_size,
        "num_hidden_layers": DIMENSIONS.layers,
        "num_attention_heads": DIMENSIONS.heads,
        _INTERMEDIATE_SIZE.get(family, "intermediate_size"): DIMENSIONS.intermediate_size,
        "pad_token_id": 0,
        "initializer_range": 0.3,
        **({} if family in _ENDLESS else {"max_position_embeddings": MAX_POSITIONS}),
        **_SPECIFIC.get(family, {}),
        **changes,
    }
    return CONFIG_MAPPING[family](**knowledge)


@cache
def tiny_family_model(family: str, auto_class: Any = AutoModelForSequenceClassification, **changes: Any) -> Any:
    """A model with random weights, biases and norms that matter included, its attention as users have it."""
    (model_class,) = [head.model_class for head in architecture_of(family).heads if head.auto_class is auto_class]
    torch.manual_seed(0)
    model = model_class(tiny_family_config(family, **changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
    return model


def tiny_family_tokenizer(family: str) -> Any:
    """A tokenizer that pads on the family's side."""
    tokenizer = tiny_tokenizer()
    tokenizer.padding_side = "left" if family == "xlnet" else "right"
    return tokenizer

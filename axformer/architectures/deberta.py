"""DeBERTa-v2 and v3: BERT's layers with disentangled attention, whose projections of positions belong to heads too."""

from typing import Any

from axformer.architectures.base import Architecture
from axformer.architectures.bert_blocks import BertAttention, BertFeedForward, encoder_layers
from axformer.architectures.hard_attention import HardAttentionDropout
from axformer.plan.plan import Plan

DISENTANGLED = BertAttention(
    projections=("query_proj", "key_proj", "value_proj", "pos_query_proj", "pos_key_proj"),
    takes=("attention_mask", "relative_pos", "rel_embeddings"),
    core="dropout",
)


def _max_tokens(config: Any) -> int | None:
    """Positions are relative, so models without additional absolute positions take inputs of any length."""
    return int(config.max_position_embeddings) if config.position_biased_input else None


def _mixes_tokens_after(config: Any) -> int:
    return 1 if getattr(config, "conv_kernel_size", 0) else 0


def _needs(config: Any, plan: Plan) -> str | None:
    if plan.layers[0].dropped and _mixes_tokens_after(config):
        return "its convolution takes the input and the output of layer 0"
    return None


DEBERTA = Architecture(
    "deberta-v2",
    DISENTANGLED,
    BertFeedForward(),
    encoder_layers,
    max_tokens=_max_tokens,
    returned=lambda hidden: (hidden, None),
    mixes_tokens_after=_mixes_tokens_after,
    config_keys=(
        *("attention_head_size", "cls_dropout", "conv_act", "conv_groups", "conv_kernel_size", "embedding_size"),
        *("norm_rel_ebd", "pooler_hidden_size", "position_buckets", "share_att_key"),
    ),
    prepare=lambda model: HardAttentionDropout.put_into(
        layer.attention.self for layer in model.base_model.encoder.layer
    ),
    needs=_needs,
)

"""ModernBERT: pre-LN, rotary positions, fused projections, a gated FFN, and layers that see only their neighbourhood."""

from typing import Any

from torch import Tensor
from transformers import AutoModelForMultipleChoice

from axformer.architectures.base import Architecture, read_first
from axformer.architectures.pre_norm import PreNormAttention, PreNormFeedForward
from axformer.architectures.slices import into
from axformer.plan.plan import Plan


def _read_position(config: Any, ids: Tensor) -> Tensor | None:
    return read_first(config, ids) if config.classifier_pooling == "cls" else None


def _needs(_: Any, plan: Plan) -> str | None:
    if plan.layers[0].dropped:
        return (
            "layer 0 has no norm before its attention, which transformers expects of the lowest layer and of no other"
        )
    return None


MODERNBERT = Architecture(
    "modernbert",
    PreNormAttention(
        norm="attn_norm",
        body="attn",
        inputs=lambda attention: into(attention.Wqkv, copies=3),
        output="Wo",
        takes=("attention_mask", "position_embeddings"),
    ),
    PreNormFeedForward(norm="mlp_norm", inputs=("Wi",), output="Wo", copies=2),
    layers_of=lambda base: base.layers,
    read_position=_read_position,
    reads_behind_padding=(AutoModelForMultipleChoice,),
    needs=_needs,
    config_keys=("global_attn_every_n_layers", "global_rope_theta", "head_dim", "local_rope_theta", "sliding_window"),
)

"""GPT-2: pre-LN and causal, with transposed projections (``Conv1D``) of which one holds queries, keys and values."""

from collections.abc import Sequence
from typing import Any

from axformer.architectures.base import Architecture, read_last
from axformer.architectures.pre_norm import PreNormAttention, PreNormFeedForward
from axformer.architectures.slices import into
from axformer.plan.plan import Plan


def _keep_heads(attention: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG001 - all heads are alike
    attention.num_heads = len(heads)
    attention.split_size = len(heads) * attention.head_dim


def _needs(config: Any, plan: Plan) -> str | None:
    are_last = plan.remaining == tuple(range(len(plan.remaining)))
    if config.scale_attn_by_inverse_layer_idx and not are_last:
        return "its attention is scaled by the number of the layer, so that only the last layers can go"
    return None


GPT2 = Architecture(
    "gpt2",
    PreNormAttention(
        norm="ln_1",
        body="attn",
        inputs=lambda attention: into(attention.c_attn, copies=3),
        output="c_proj",
        takes=("attention_mask",),
        keep=_keep_heads,
        causal=True,
    ),
    PreNormFeedForward(norm="ln_2", inputs=("c_fc",), output="c_proj", activation="act"),
    layers_of=lambda base: base.h,
    intermediate_size=lambda config: int(config.n_inner or 4 * config.hidden_size),
    neurons_key="n_inner",
    read_position=read_last,
    causal=True,
    needs=_needs,
    config_keys=("classifier_dropout", "hidden_dropout", "is_causal"),
)

"""Llama and Qwen3: causal, pre-LN with RMSNorm, rotary positions, gated FFNs, and query heads that share keys and values.

A head is a query head. Its key and value head goes when the last query head that shares it goes. Where the query heads
that are left do not share evenly any more, keys and values are handed out to them one by one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, Block, read_last
from axformer.architectures.removed import Constant, ConstantDecoderAttention
from axformer.architectures.slices import into, out_of

HEAD_NORMS = ("q_norm", "k_norm")
"""Qwen3's norms of queries and keys, the same for all heads."""


class LlamaLayout:
    """Layers as in ``LlamaDecoderLayer``; see :class:`axformer.architectures.base.LayerLayout`."""

    def attention(self, layer: Any) -> Block:
        core = layer.self_attn
        share = core.num_key_value_groups
        inputs = (*into(core.q_proj), *into(core.k_proj, share=share), *into(core.v_proj, share=share))
        norms = [getattr(core, name) for name in HEAD_NORMS if hasattr(core, name)]
        company = (layer.input_layernorm, *norms)
        return Block(inputs, out_of(core.o_proj), core.o_proj.bias, company, core)

    def ffn(self, layer: Any) -> Block:
        mlp = layer.mlp
        inputs = (*into(mlp.gate_proj), *into(mlp.up_proj))
        return Block(inputs, out_of(mlp.down_proj), mlp.down_proj.bias, company=(layer.post_attention_layernorm,))

    def run_attention(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        positions, mask = arguments["position_embeddings"], arguments["attention_mask"]
        normed = layer.input_layernorm(hidden)
        added: Tensor = layer.self_attn(normed, position_embeddings=positions, attention_mask=mask)[0]
        return hidden + added

    def run_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        added: Tensor = layer.mlp(layer.post_attention_layernorm(hidden))
        return hidden + added

    def skip_attention(self, layer: Any, hidden: Tensor) -> Tensor:  # noqa: ARG002 - nothing of the layer is left
        return hidden

    def skip_ffn(self, layer: Any, hidden: Tensor) -> Tensor:  # noqa: ARG002 - nothing of the layer is left
        return hidden

    def returned(self, hidden: Tensor) -> Any:
        return hidden

    def remove_attention(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.input_layernorm = nn.Identity()
        layer.self_attn = ConstantDecoderAttention(bias, layer.self_attn.layer_idx)

    def remove_ffn(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.post_attention_layernorm, layer.mlp = nn.Identity(), Constant(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - groups say it all
        core = layer.self_attn
        shared = Counter(head // core.num_key_value_groups for head in heads)
        if len(set(shared.values())) == 1:
            core.num_key_value_groups = shared.most_common(1)[0][1]
            return
        owners = [list(shared).index(head // core.num_key_value_groups) for head in heads]
        core.num_key_value_groups = 1
        core.k_proj = _HandedOut(core.k_proj, owners, core.head_dim)
        core.v_proj = _HandedOut(core.v_proj, owners, core.head_dim)


class _HandedOut(nn.Module):
    """A projection to fewer heads than ask for its output: each of them gets the one that it shares."""

    def __init__(self, projection: nn.Module, owners: Sequence[int], head_size: int) -> None:
        super().__init__()
        self.projection = projection
        self.owners = list(owners)
        self.head_size = head_size

    def forward(self, hidden: Tensor) -> Tensor:
        heads: Tensor = self.projection(hidden).unflatten(-1, (-1, self.head_size))
        return heads[..., self.owners, :].flatten(start_dim=-2)


def _family(model_type: str) -> Architecture:
    return Architecture(
        model_type, LlamaLayout(), layers_of=lambda base: base.layers, read_position=read_last, causal=True
    )


LLAMA_FAMILIES = (_family("llama"), _family("qwen3"))

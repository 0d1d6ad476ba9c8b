"""MPNet: BERT's layers with a relative position bias, a column a head, which the encoder computes once for all layers."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, Block
from axformer.architectures.bert import encoder_layers
from axformer.architectures.removed import Constant, ConstantAttention
from axformer.architectures.slices import into, out_of
from axformer.hard_attention import HardAttentionDropout

FIRST_POSITION = 2
"""Positions are counted from behind the padding index, which is 1 whatever the configuration says."""


class MPNetLayout:
    """Layers as in ``MPNetLayer``; see :class:`axformer.architectures.base.LayerLayout`."""

    def attention(self, layer: Any) -> Block:
        module = layer.attention.attn
        inputs = (*into(module.q), *into(module.k), *into(module.v))
        return Block(inputs, out_of(module.o), module.o.bias, core=module.dropout)

    def ffn(self, layer: Any) -> Block:
        return Block(into(layer.intermediate.dense), out_of(layer.output.dense), layer.output.dense.bias)

    def run_attention(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        output: Tensor = layer.attention(hidden, arguments["attention_mask"], arguments["position_bias"])[0]
        return output

    def run_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        output: Tensor = layer.output(layer.intermediate(hidden), hidden)
        return output

    def skip_attention(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.attention.LayerNorm(hidden)
        return normed

    def skip_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.output.LayerNorm(hidden)
        return normed

    def returned(self, hidden: Tensor) -> Any:
        return (hidden,)

    def remove_attention(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attention.attn = ConstantAttention(bias)

    def remove_ffn(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.intermediate = nn.Identity()
        layer.output.dense = Constant(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - the bias has them all
        module = layer.attention.attn
        module.num_attention_heads = len(heads)
        module.all_head_size = len(heads) * module.attention_head_size
        layer.attention.attn = _SomeHeads(module, heads)


class _SomeHeads(nn.Module):
    """Self-attention with some of the heads that the position bias is made for."""

    def __init__(self, attention: nn.Module, heads: Sequence[int]) -> None:
        super().__init__()
        self.attention = attention
        self.heads = list(heads)

    def forward(self, hidden: Tensor, mask: Tensor | None, position_bias: Tensor, **arguments: Any) -> Any:
        return self.attention(hidden, mask, position_bias[:, self.heads], **arguments)


def _prepare(model: Any) -> None:
    for layer in encoder_layers(model.base_model):
        module: Any = layer.attention.attn
        module.dropout = HardAttentionDropout.in_place_of(module.dropout)


MPNET = Architecture(
    "mpnet",
    MPNetLayout(),
    encoder_layers,
    max_tokens=lambda config: int(config.max_position_embeddings) - FIRST_POSITION,
    prepare=_prepare,
)

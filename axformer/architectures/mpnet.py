"""MPNet: BERT's layers with a relative position bias, one column per head, which the encoder computes once for all layers."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights
from axformer.architectures.bert_blocks import BertFeedForward, encoder_layers
from axformer.architectures.hard_attention import HardAttentionDropout
from axformer.architectures.removed import ConstantAttention
from axformer.architectures.slices import into, out_of

FIRST_POSITION = 2
"""Positions start behind the padding index, which is 1 whatever the config says."""


class MPNetAttention:
    """See :class:`axformer.architectures.base.AttentionLayout`."""

    def weights(self, layer: Any) -> BlockWeights:
        attention: Any = layer.attention.attn
        module: Any = attention.attention if isinstance(attention, _SomeHeads) else attention
        inputs = (*into(module.q), *into(module.k), *into(module.v))
        return BlockWeights(inputs, out_of(module.o), module.o.bias, core=module.dropout)

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        output: Tensor = layer.attention(hidden, arguments["attention_mask"], arguments["position_bias"])[0]
        return output

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.attention.LayerNorm(hidden)
        return normed

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attention.attn = ConstantAttention(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - the bias has them all
        module = layer.attention.attn
        module.num_attention_heads = len(heads)
        module.all_head_size = len(heads) * module.attention_head_size
        layer.attention.attn = _SomeHeads(module, heads)


class _SomeHeads(nn.Module):
    """Self-attention with a subset of the heads that the position bias covers."""

    def __init__(self, attention: nn.Module, heads: Sequence[int]) -> None:
        super().__init__()
        self.attention = attention
        self.heads = list(heads)

    def forward(self, hidden: Tensor, mask: Tensor | None, position_bias: Tensor, **arguments: Any) -> Any:
        return self.attention(hidden, mask, position_bias[:, self.heads], **arguments)


MPNET = Architecture(
    "mpnet",
    MPNetAttention(),
    BertFeedForward(),
    encoder_layers,
    max_tokens=lambda config: int(config.max_position_embeddings) - FIRST_POSITION,
    returned=lambda hidden: (hidden,),
    prepare=lambda model: HardAttentionDropout.put_into(
        layer.attention.attn for layer in model.base_model.encoder.layer
    ),
)

"""The layers of BERT and its many relatives: post-LN, with query, key and value in linear modules of their own."""

from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import AttentionParts, FeedForwardParts
from axformer.architectures.residual import ResidualNorm


class BertLayout:
    """Layers as in ``BertLayer``; see :class:`axformer.architectures.base.LayerLayout`."""

    def attention_parts(self, layer: Any) -> AttentionParts:
        core = layer.attention.self
        return AttentionParts(core, (core.query, core.key, core.value), layer.attention.output.dense)

    def ffn_parts(self, layer: Any) -> FeedForwardParts:
        return FeedForwardParts((layer.intermediate.dense,), layer.output.dense)

    def run_attention(self, layer: Any, hidden: Tensor, mask: Tensor | None) -> Tensor:
        output: Tensor = layer.attention(hidden, mask)[0]
        return output

    def run_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        output: Tensor = layer.feed_forward_chunk(hidden)
        return output

    def skip_attention(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.attention.output.LayerNorm(hidden)
        return normed

    def skip_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.output.LayerNorm(hidden)
        return normed

    def remove_attention(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attention = _NoAttention(ResidualNorm(layer.attention.output.LayerNorm, bias))

    def remove_ffn(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.intermediate = nn.Identity()
        layer.output = _NoFeedForward(ResidualNorm(layer.output.LayerNorm, bias))

    def set_head_count(self, layer: Any, heads: int) -> None:
        core = layer.attention.self
        core.num_attention_heads = heads
        core.all_head_size = heads * core.attention_head_size


class _NoAttention(nn.Module):
    """Takes the place and the call of ``BertAttention``."""

    def __init__(self, output: ResidualNorm) -> None:
        super().__init__()
        self.output = output

    def forward(self, hidden_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, None]:
        return self.output(hidden_states), None


class _NoFeedForward(nn.Module):
    """Takes the place and the call of ``BertOutput``; the activations before it do not exist any more."""

    def __init__(self, output: ResidualNorm) -> None:
        super().__init__()
        self.output = output

    def forward(self, _: Tensor, input_tensor: Tensor) -> Tensor:
        normed: Tensor = self.output(input_tensor)
        return normed

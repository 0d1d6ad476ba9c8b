"""The layers of BERT and its many relatives: post-LN, with query, key and value in linear modules of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Block
from axformer.architectures.removed import Constant, ConstantAttention
from axformer.architectures.slices import into, out_of


class BertLayout:
    """Layers as in ``BertLayer``; see :class:`axformer.architectures.base.LayerLayout`."""

    def attention(self, layer: Any) -> Block:
        core, output = layer.attention.self, layer.attention.output.dense
        inputs = (*into(core.query), *into(core.key), *into(core.value))
        return Block(inputs, out_of(output), output.bias, core=core)

    def ffn(self, layer: Any) -> Block:
        return Block(into(layer.intermediate.dense), out_of(layer.output.dense), layer.output.dense.bias)

    def run_attention(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        output: Tensor = layer.attention(hidden, arguments["attention_mask"])[0]
        return output

    def run_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        output: Tensor = layer.output(layer.intermediate(hidden), hidden)
        return output

    def skip_attention(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.attention.output.LayerNorm(hidden)
        return normed

    def skip_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.output.LayerNorm(hidden)
        return normed

    def returned(self, hidden: Tensor) -> Any:
        return hidden

    def remove_attention(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attention.self = ConstantAttention(None)
        layer.attention.output.dense = Constant(bias)

    def remove_ffn(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.intermediate = nn.Identity()
        layer.output.dense = Constant(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - all heads are alike
        core = layer.attention.self
        core.num_attention_heads = len(heads)
        core.all_head_size = len(heads) * core.attention_head_size

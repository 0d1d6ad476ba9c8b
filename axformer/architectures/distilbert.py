"""DistilBERT: BERT's layers under other names, six of them, without segments and without a pooler."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, Block
from axformer.architectures.removed import Constant, ConstantAttention
from axformer.architectures.slices import into, out_of


class DistilBertLayout:
    """Layers as in DistilBERT's ``TransformerBlock``; see :class:`axformer.architectures.base.LayerLayout`."""

    def attention(self, layer: Any) -> Block:
        core = layer.attention
        inputs = (*into(core.q_lin), *into(core.k_lin), *into(core.v_lin))
        return Block(inputs, out_of(core.out_lin), core.out_lin.bias, core=core)

    def ffn(self, layer: Any) -> Block:
        return Block(into(layer.ffn.lin1), out_of(layer.ffn.lin2), layer.ffn.lin2.bias)

    def run_attention(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        added = layer.attention(hidden, attention_mask=arguments["attention_mask"])[0]
        return self.skip_attention(layer, added + hidden)

    def run_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        return self.skip_ffn(layer, layer.ffn(hidden) + hidden)

    def skip_attention(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.sa_layer_norm(hidden)
        return normed

    def skip_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.output_layer_norm(hidden)
        return normed

    def returned(self, hidden: Tensor) -> Any:
        return hidden

    def remove_attention(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attention = ConstantAttention(bias)

    def remove_ffn(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.ffn = Constant(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - all heads are alike
        layer.attention.n_heads = len(heads)


DISTILBERT = Architecture(
    "distilbert",
    DistilBertLayout(),
    layers_of=lambda base: base.transformer.layer,
    intermediate_size=lambda config: int(config.hidden_dim),
)

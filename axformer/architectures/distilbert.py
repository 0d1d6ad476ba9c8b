"""DistilBERT: BERT's layers under other names, six of them, without segments and without a pooler."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights, PlainAttention
from axformer.architectures.hard_attention import TOP_K_ATTRIBUTE
from axformer.architectures.removed import Constant, ConstantAttention
from axformer.architectures.slices import into, out_of


class DistilBertAttention:
    """See :class:`axformer.architectures.base.AttentionLayout`."""

    def weights(self, layer: Any) -> BlockWeights:
        core = layer.attention
        inputs = (*into(core.q_lin), *into(core.k_lin), *into(core.v_lin))
        top_k = getattr(core, TOP_K_ATTRIBUTE, None)
        plain = PlainAttention(core.q_lin, core.k_lin, core.v_lin, core.n_heads, core.scaling, top_k)
        return BlockWeights(inputs, out_of(core.out_lin), core.out_lin.bias, core=core, plain=plain)

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        added = layer.attention(hidden, attention_mask=arguments["attention_mask"])[0]
        return self.skip(layer, added + hidden)

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.sa_layer_norm(hidden)
        return normed

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attention = ConstantAttention(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - all heads are alike
        layer.attention.n_heads = len(heads)


class DistilBertFeedForward:
    """See :class:`axformer.architectures.base.BlockLayout`."""

    def weights(self, layer: Any) -> BlockWeights:
        ffn = layer.ffn
        return BlockWeights(into(ffn.lin1), out_of(ffn.lin2), ffn.lin2.bias, activation=(ffn, "activation"))

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:  # noqa: ARG002 - it takes none
        return self.skip(layer, layer.ffn(hidden) + hidden)

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.output_layer_norm(hidden)
        return normed

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.ffn = Constant(bias)


DISTILBERT = Architecture(
    "distilbert",
    DistilBertAttention(),
    DistilBertFeedForward(),
    layers_of=lambda base: base.transformer.layer,
    intermediate_size=lambda config: int(config.hidden_dim),
    neurons_key="hidden_dim",
)

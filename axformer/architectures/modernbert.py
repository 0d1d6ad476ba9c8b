"""ModernBERT: pre-LN, rotary positions, fused projections, a gated FFN, and layers that see only their neighbourhood."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, Block, read_first
from axformer.architectures.removed import Constant, ConstantAttention
from axformer.architectures.slices import into, out_of


class ModernBertLayout:
    """Layers as in ``ModernBertEncoderLayer``; see :class:`axformer.architectures.base.LayerLayout`."""

    def attention(self, layer: Any) -> Block:
        core = layer.attn
        return Block(into(core.Wqkv, copies=3), out_of(core.Wo), core.Wo.bias, company=(layer.attn_norm,), core=core)

    def ffn(self, layer: Any) -> Block:
        mlp = layer.mlp
        return Block(into(mlp.Wi, copies=2), out_of(mlp.Wo), mlp.Wo.bias, company=(layer.mlp_norm,))

    def run_attention(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        positions, mask = arguments["position_embeddings"], arguments["attention_mask"]
        added: Tensor = layer.attn(layer.attn_norm(hidden), position_embeddings=positions, attention_mask=mask)[0]
        return hidden + added

    def run_ffn(self, layer: Any, hidden: Tensor) -> Tensor:
        added: Tensor = layer.mlp(layer.mlp_norm(hidden))
        return hidden + added

    def skip_attention(self, layer: Any, hidden: Tensor) -> Tensor:  # noqa: ARG002 - nothing of the layer is left
        return hidden

    def skip_ffn(self, layer: Any, hidden: Tensor) -> Tensor:  # noqa: ARG002 - nothing of the layer is left
        return hidden

    def returned(self, hidden: Tensor) -> Any:
        return hidden

    def remove_attention(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attn_norm, layer.attn = nn.Identity(), ConstantAttention(bias)

    def remove_ffn(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.mlp_norm, layer.mlp = nn.Identity(), Constant(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:
        """Heads are counted from the projections' shapes."""


def _read_position(config: Any, ids: Tensor) -> Tensor | None:
    return read_first(config, ids) if config.classifier_pooling == "cls" else None


MODERNBERT = Architecture(
    "modernbert", ModernBertLayout(), layers_of=lambda base: base.layers, read_position=_read_position
)

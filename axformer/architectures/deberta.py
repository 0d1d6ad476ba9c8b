"""DeBERTa-v2 and v3: BERT's layers with disentangled attention, whose projections of positions belong to heads too."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, Block
from axformer.architectures.bert import encoder_layers
from axformer.architectures.removed import Constant, ConstantAttention
from axformer.architectures.slices import into, out_of
from axformer.hard_attention import HardAttentionDropout

PROJECTIONS = ("query_proj", "key_proj", "value_proj", "pos_query_proj", "pos_key_proj")
"""The last two are there or not, by configuration."""
POSITIONS = ("relative_pos", "rel_embeddings")


class DebertaLayout:
    """Layers as in ``DebertaV2Layer``; see :class:`axformer.architectures.base.LayerLayout`."""

    def attention(self, layer: Any) -> Block:
        module, output = layer.attention.self, layer.attention.output.dense
        projections = [getattr(module, name) for name in PROJECTIONS if hasattr(module, name)]
        inputs = tuple(part for projection in projections for part in into(projection))
        return Block(inputs, out_of(output), output.bias, core=module.dropout)

    def ffn(self, layer: Any) -> Block:
        return Block(into(layer.intermediate.dense), out_of(layer.output.dense), layer.output.dense.bias)

    def run_attention(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        positions = {name: arguments[name] for name in POSITIONS}
        output: Tensor = layer.attention(hidden, arguments["attention_mask"], **positions)[0]
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
        return hidden, None

    def remove_attention(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attention.self = ConstantAttention(None)
        layer.attention.output.dense = Constant(bias)

    def remove_ffn(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.intermediate = nn.Identity()
        layer.output.dense = Constant(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - all heads are alike
        module = layer.attention.self
        module.num_attention_heads = len(heads)
        module.all_head_size = len(heads) * module.attention_head_size


def _prepare(model: Any) -> None:
    for layer in encoder_layers(model.base_model):
        module: Any = layer.attention.self
        module.dropout = HardAttentionDropout.in_place_of(module.dropout)


def _max_tokens(config: Any) -> int | None:
    """Positions are relative, so models that have no absolute ones beside them take inputs of any length."""
    return int(config.max_position_embeddings) if config.position_biased_input else None


DEBERTA = Architecture("deberta-v2", DebertaLayout(), encoder_layers, max_tokens=_max_tokens, prepare=_prepare)

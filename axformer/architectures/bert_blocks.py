"""The blocks of BERT's layers, post-LN, which many of its relatives share, and the families that have BERT's whole encoder.

These differ in their embeddings and heads: RoBERTa (with its descendants XLM-R and CamemBERT) counts positions from behind the
padding index; ELECTRA may have embeddings that are narrower than its layers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from axformer.architectures.base import Architecture, BlockWeights, PlainAttention, max_positions
from axformer.architectures.hard_attention import TOP_K_ATTRIBUTE
from axformer.architectures.removed import Constant, ConstantAttention
from axformer.architectures.slices import into, out_of
from axformer.errors import CheckpointError


@dataclass(frozen=True)
class BertAttention:
    """Attention as in ``BertAttention``; see :class:`axformer.architectures.base.AttentionLayout`."""

    projections: tuple[str, ...] = ("query", "key", "value")
    """Names of the input projections; missing ones are skipped."""
    takes: tuple[str, ...] = ("attention_mask",)
    """Names of the layer's arguments that are passed on to attention."""
    core: str | None = None
    """The submodule on which hard attention is switched on, if it is not the self-attention module."""

    def weights(self, layer: Any) -> BlockWeights:
        module, output = layer.attention.self, layer.attention.output.dense
        projections = [getattr(module, name) for name in self.projections if hasattr(module, name)]
        inputs = tuple(part for projection in projections for part in into(projection))
        core = module if self.core is None else getattr(module, self.core)
        return BlockWeights(inputs, out_of(output), output.bias, core=core, plain=self._plain(module))

    def _plain(self, module: Any) -> PlainAttention | None:
        if self != BertAttention():
            return None
        top_k = getattr(module, TOP_K_ATTRIBUTE, None)
        return PlainAttention(module.query, module.key, module.value, module.num_attention_heads, module.scaling, top_k)

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        output: Tensor = layer.attention(hidden, **{name: arguments[name] for name in self.takes})[0]
        return output

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.attention.output.LayerNorm(hidden)
        return normed

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.attention.self = ConstantAttention(None)
        layer.attention.output.dense = Constant(bias)

    def keep_heads(self, layer: Any, heads: Sequence[int], total: int) -> None:  # noqa: ARG002 - all heads are alike
        module = layer.attention.self
        module.num_attention_heads = len(heads)
        module.all_head_size = len(heads) * module.attention_head_size


class BertFeedForward:
    """An FFN as in ``BertIntermediate`` and ``BertOutput``; see :class:`axformer.architectures.base.BlockLayout`."""

    def weights(self, layer: Any) -> BlockWeights:
        inner, output = layer.intermediate, layer.output.dense
        return BlockWeights(into(inner.dense), out_of(output), output.bias, activation=(inner, "intermediate_act_fn"))

    def run(self, layer: Any, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:  # noqa: ARG002 - it takes none
        output: Tensor = layer.output(layer.intermediate(hidden), hidden)
        return output

    def skip(self, layer: Any, hidden: Tensor) -> Tensor:
        normed: Tensor = layer.output.LayerNorm(hidden)
        return normed

    def remove(self, layer: Any, bias: nn.Parameter | None) -> None:
        layer.intermediate = nn.Identity()
        layer.output.dense = Constant(bias)


def encoder_layers(base: Any) -> Sequence[nn.Module]:
    """The layers where encoders have them."""
    layers: Sequence[nn.Module] = base.encoder.layer
    return layers


def _behind_padding(config: Any) -> int:
    if config.pad_token_id is None:
        raise CheckpointError(
            f"config.json says no pad_token_id, behind which models of type '{config.model_type}' count their positions; set "
            "it to the one that the model was trained with, mostly 1"
        )
    return int(config.max_position_embeddings) - int(config.pad_token_id) - 1


def _family(model_type: str, max_tokens: Callable[[Any], int | None] = max_positions) -> Architecture:
    return Architecture(model_type, BertAttention(), BertFeedForward(), encoder_layers, max_tokens=max_tokens)


BERT_FAMILIES = (
    _family("bert"),
    _family("electra"),
    _family("roberta", _behind_padding),
    _family("xlm-roberta", _behind_padding),
    _family("camembert", _behind_padding),
)

"""The BERT layout: post-LN, learned positions, a pooler that reads the first position."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from transformers import BertForSequenceClassification
from transformers.masking_utils import create_bidirectional_mask

from axformer.architectures.base import AttentionParts, FeedForwardParts
from axformer.architectures.residual import ResidualNorm
from axformer.elements import Dimensions


class BertArchitecture:
    """Adapter of the family; see :class:`axformer.architectures.base.Architecture`."""

    model_type = "bert"
    model_class: Any = BertForSequenceClassification

    def dimensions(self, config: Any) -> Dimensions:
        return Dimensions(
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
        )

    def max_tokens(self, config: Any) -> int:
        return int(config.max_position_embeddings)

    def layers(self, model: Any) -> Sequence[nn.Module]:
        layers: nn.ModuleList = model.bert.encoder.layer
        return list(layers)

    def attention_parts(self, layer: Any) -> AttentionParts:
        core = layer.attention.self
        return AttentionParts(core, (core.query, core.key, core.value), layer.attention.output.dense)

    def ffn_parts(self, layer: Any) -> FeedForwardParts:
        return FeedForwardParts((layer.intermediate.dense,), layer.output.dense)

    def embed(self, model: Any, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        hidden: Tensor = model.bert.embeddings(
            input_ids=inputs["input_ids"], token_type_ids=inputs.get("token_type_ids")
        )
        mask = create_bidirectional_mask(model.config, hidden, inputs["attention_mask"])
        assert mask is None or isinstance(mask, Tensor)
        return hidden, mask

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

    def read_by_head(self, hidden: Tensor) -> Tensor:
        return hidden[:, :1]

    def head(self, model: Any, hidden: Tensor) -> Tensor:
        logits: Tensor = model.classifier(model.dropout(model.bert.pooler(hidden)))
        return logits

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

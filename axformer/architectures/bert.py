"""Families whose encoder is that of BERT. They differ in how inputs are embedded and in the head.

BERT puts a pooler before its classifier. RoBERTa (and XLM-R and CamemBERT, its retrainings) and ELECTRA have it inside; RoBERTa
counts positions from behind the padding index; ELECTRA may embed narrower than it computes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import (
    BertForSequenceClassification,
    CamembertForSequenceClassification,
    ElectraForSequenceClassification,
    RobertaForSequenceClassification,
    XLMRobertaForSequenceClassification,
)
from transformers.masking_utils import create_bidirectional_mask

from axformer.architectures.bert_layout import BertLayout
from axformer.elements import Dimensions


@dataclass(frozen=True)
class BertArchitecture:
    """Adapter of one such family; see :class:`axformer.architectures.base.Architecture`."""

    model_type: str
    model_class: Any
    classify: Callable[[Any, Tensor], Tensor]
    """Logits from the head's input."""
    positions_start: Callable[[Any], int] = lambda _: 0
    """The first position that an input can have, given the configuration."""
    causal: bool = False
    layout: BertLayout = BertLayout()  # noqa: RUF009 - it has no state

    def dimensions(self, config: Any) -> Dimensions:
        return Dimensions(
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
        )

    def max_tokens(self, config: Any) -> int:
        return int(config.max_position_embeddings) - self.positions_start(config)

    def layers(self, model: Any) -> Sequence[nn.Module]:
        layers: nn.ModuleList = model.base_model.encoder.layer
        return list(layers)

    def embed(self, model: Any, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        base = model.base_model
        hidden: Tensor = base.embeddings(input_ids=inputs["input_ids"], token_type_ids=inputs.get("token_type_ids"))
        mask = create_bidirectional_mask(model.config, hidden, inputs["attention_mask"])
        assert mask is None or isinstance(mask, Tensor)
        if hasattr(base, "embeddings_project"):
            hidden = base.embeddings_project(hidden)
        return hidden, mask

    def read_by_head(self, hidden: Tensor) -> Tensor:
        return hidden[:, :1]

    def head(self, model: Any, hidden: Tensor) -> Tensor:
        return self.classify(model, hidden)


def _pool_and_classify(model: Any, hidden: Tensor) -> Tensor:
    logits: Tensor = model.classifier(model.dropout(model.base_model.pooler(hidden)))
    return logits


def _classify(model: Any, hidden: Tensor) -> Tensor:
    logits: Tensor = model.classifier(hidden)
    return logits


def _behind_padding(config: Any) -> int:
    return int(config.pad_token_id) + 1


BERT_FAMILIES = (
    BertArchitecture("bert", BertForSequenceClassification, _pool_and_classify),
    BertArchitecture("electra", ElectraForSequenceClassification, _classify),
    BertArchitecture("roberta", RobertaForSequenceClassification, _classify, _behind_padding),
    BertArchitecture("xlm-roberta", XLMRobertaForSequenceClassification, _classify, _behind_padding),
    BertArchitecture("camembert", CamembertForSequenceClassification, _classify, _behind_padding),
)

"""Families whose encoder is that of BERT. They differ in how inputs are embedded and in their heads.

RoBERTa (and XLM-R and CamemBERT, its retrainings) counts positions from behind the padding index; ELECTRA may embed narrower
than it computes.
"""

from collections.abc import Sequence
from typing import Any

from torch import nn

from axformer.architectures.base import Architecture
from axformer.architectures.bert_layout import BertLayout


def encoder_layers(base: Any) -> Sequence[nn.Module]:
    """The layers where encoders have them."""
    layers: Sequence[nn.Module] = base.encoder.layer
    return layers


def positions_behind_padding(config: Any) -> int:
    """The longest input where positions are counted from behind the padding index."""
    return int(config.max_position_embeddings) - int(config.pad_token_id) - 1


BERT_FAMILIES = (
    Architecture("bert", BertLayout(), encoder_layers),
    Architecture("electra", BertLayout(), encoder_layers),
    Architecture("roberta", BertLayout(), encoder_layers, max_tokens=positions_behind_padding),
    Architecture("xlm-roberta", BertLayout(), encoder_layers, max_tokens=positions_behind_padding),
    Architecture("camembert", BertLayout(), encoder_layers, max_tokens=positions_behind_padding),
)

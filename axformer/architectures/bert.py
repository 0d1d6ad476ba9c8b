"""Families with BERT's encoder. They differ in their embeddings and heads.

RoBERTa (with its descendants XLM-R and CamemBERT) counts positions from behind the padding index; ELECTRA may have
embeddings that are narrower than its layers.
"""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from axformer.architectures.base import Architecture, max_positions
from axformer.architectures.bert_blocks import BertAttention, BertFeedForward
from axformer.errors import CheckpointError


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

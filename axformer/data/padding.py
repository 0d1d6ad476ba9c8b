"""Padding: how inputs of different lengths share a batch, with which token and on which side.

In a causal model, padding on the right does not affect the input, so any token will do and a language model needs no pad token.
Only a head that reads the last token must find it, for which transformers uses ``pad_token_id``. Without one, such a model
takes one row at a time, and so does a pass, since any other token could also end a text.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axformer.errors import CheckpointError

_ANY_TOKEN = 0
"""The padding token if any token will do."""


@dataclass(frozen=True)
class Padding:
    """How the rows of a batch are padded to equal length."""

    filler: int | None = None
    """The token that pads short rows; None to use the tokenizer's own padding."""
    side: str | None = None
    """The side of the padding, ``left`` or ``right``; None for the tokenizer's."""
    alone: bool = False
    """Whether rows go through the model one at a time."""
    apart: int | None = None
    """Rows with more tokens share no batch with others: the longest row decides for its whole batch how positions count."""

    def fill(self, features: dict[str, list[list[int]]]) -> dict[str, Tensor]:
        """Pad the features of some rows to shape (rows, tokens); features other than token ids are padded with 0."""
        tokens = max(map(len, features["input_ids"]))
        fillers = {"input_ids": self.filler}
        return {
            name: torch.tensor([padded_row(row, fillers.get(name, 0), tokens, self.side) for row in rows])
            for name, rows in features.items()
        }


BY_TOKENIZER = Padding()
"""The tokenizer's own padding."""


def padded_row(row: list[Any], filler: Any, tokens: int, side: str | None) -> list[Any]:
    """Pad a row to a length, on the right unless the side is ``left``."""
    padding = [filler] * (tokens - len(row))
    return padding + row if side == "left" else row + padding


def padding_of(config: Any, tokenizer: Any, *, causal: bool, pooled: bool, is_read: bool = False) -> Padding:
    """The padding for a model and its tokenizer.

    Args:
        pooled: whether its head reads one position; that of a causal model reads the last token that is not padding.
        is_read: whether pooling heads read padding too, so that no two rows can share a batch.

    Raises:
        CheckpointError: neither the tokenizer nor the model has a pad token, or they disagree, or the model does not know it.
    """
    known = config.pad_token_id if _is_known(config.pad_token_id, config) else None
    token = tokenizer.pad_token_id
    if token is not None:
        _check_agrees(token, config, causal=causal)
    if not causal:
        if token is None and known is None:
            raise CheckpointError(
                "neither the tokenizer nor the model names a pad token, so inputs of unlike length cannot share a batch; save "
                "the checkpoint with the tokenizer it was trained with"
            )
        alone = pooled and is_read
        return Padding(alone=alone) if token is not None else Padding(known, tokenizer.padding_side, alone)
    if pooled and known is None:
        return Padding(_ANY_TOKEN, "right", alone=True)
    filler = next(one for one in (known, token, _ANY_TOKEN) if one is not None)
    rope = getattr(config, "rope_parameters", None) or {}
    apart = rope["original_max_position_embeddings"] if rope.get("rope_type") == "longrope" else None
    return Padding(filler, "right", apart=apart)


def _is_known(token: int | None, config: Any) -> bool:
    return token is not None and 0 <= token < config.vocab_size


def _check_agrees(token: int, config: Any, *, causal: bool) -> None:
    """Check that a model knows its tokenizer's pad token and does not use another one."""
    if not _is_known(token, config):
        raise CheckpointError(
            f"the tokenizer pads with token {token}, the model knows {config.vocab_size} tokens; call "
            "model.resize_token_embeddings(len(tokenizer)) and save the model again"
        )
    if causal and config.pad_token_id not in (None, token):
        raise CheckpointError(
            f"the tokenizer pads with token {token}, the model expects {config.pad_token_id} and would read padding as text; "
            "set model.config.pad_token_id = tokenizer.pad_token_id and save the model again"
        )

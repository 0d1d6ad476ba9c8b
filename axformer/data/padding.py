"""How inputs of different length share a batch: what fills up the short ones, with which token, and on which side.

A causal model looks back only, so what stands behind an input on the right changes nothing of it, whatever it is: any token
does, and a model of text needs no pad token of its own. Only a head that reads the last token must know which one that is,
and transformers finds it by ``pad_token_id``. Without one it takes one row at a time, and so does a pass: any token in its
place could also end a text.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axformer.errors import CheckpointError

_ANY_TOKEN = 0
"""What fills up where no token is better than another."""


@dataclass(frozen=True)
class Padding:
    """How the rows of a batch are made equally long."""

    filler: int | None = None
    """The token that fills up short rows; None if the tokenizer does that by itself, as it is set up."""
    side: str | None = None
    """Where it stands, ``left`` or ``right``; None if the tokenizer says."""
    alone: bool = False
    """Rows go through the model one at a time."""

    def fill(self, features: dict[str, list[list[int]]]) -> dict[str, Tensor]:
        """The features of some rows, each of shape (rows, tokens); where a row is filled up, all but token ids are 0."""
        tokens = max(map(len, features["input_ids"]))
        fillers = {"input_ids": self.filler}
        return {
            name: torch.tensor([padded_row(row, fillers.get(name, 0), tokens, self.side) for row in rows])
            for name, rows in features.items()
        }


BY_TOKENIZER = Padding()
"""As the tokenizer is set up."""


def padded_row(row: list[Any], filler: Any, tokens: int, side: str | None) -> list[Any]:
    """A row that is filled up to a length, on the right unless the side is ``left``."""
    padding = [filler] * (tokens - len(row))
    return padding + row if side == "left" else row + padding


def padding_of(config: Any, tokenizer: Any, *, causal: bool, pooled: bool) -> Padding:
    """How inputs of a model share a batch.

    Args:
        config: the model's configuration.
        tokenizer: its tokenizer.
        causal: whether the model looks back only.
        pooled: whether its head reads one position; that of a causal model reads the last token that is not padding.

    Raises:
        CheckpointError: neither the tokenizer nor the model names a token for it, or they name two, or one that the model does
            not know.
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
        return BY_TOKENIZER if token is not None else Padding(known, tokenizer.padding_side)
    if pooled and known is None:
        return Padding(_ANY_TOKEN, "right", alone=True)
    return Padding(next(one for one in (known, token, _ANY_TOKEN) if one is not None), "right")


def _is_known(token: int | None, config: Any) -> bool:
    return token is not None and 0 <= token < config.vocab_size


def _check_agrees(token: int, config: Any, *, causal: bool) -> None:
    """Make sure that a model knows the token that its tokenizer pads with, and takes no other one for padding."""
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

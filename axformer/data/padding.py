"""Inputs of unlike length share a batch only if tokenizer and model agree on the token that fills up the short ones."""

from typing import Any

from axformer.errors import CheckpointError


def settle_padding(config: Any, tokenizer: Any, *, causal: bool) -> None:
    """Make sure that model and tokenizer pad with the same token; a model without one takes the tokenizer's.

    Args:
        config: the model's configuration; its ``pad_token_id`` is set where it is null.
        causal: whether the model looks back only; its classifier then reads the last token that is not padding.

    Raises:
        CheckpointError: the tokenizer has no pad token, or the model knows another, or no such token at all.
    """
    token = tokenizer.pad_token_id
    if token is None:
        raise CheckpointError(
            "the tokenizer has no pad token, so inputs of unlike length cannot share a batch; set "
            "tokenizer.pad_token = tokenizer.eos_token and model.config.pad_token_id = tokenizer.pad_token_id, and save both"
        )
    if token >= config.vocab_size:
        raise CheckpointError(
            f"the tokenizer pads with token {token}, the model knows {config.vocab_size} tokens; call "
            "model.resize_token_embeddings(len(tokenizer)) and save the model again"
        )
    if config.pad_token_id is None:
        config.pad_token_id = token
    if causal and config.pad_token_id != token:
        raise CheckpointError(
            f"the tokenizer pads with token {token}, the model expects {config.pad_token_id} and would read padding as text; "
            "set model.config.pad_token_id = tokenizer.pad_token_id and save the model again"
        )

"""Masked language modelling: predict hidden tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from axformer.data.batches import Batch
from axformer.data.encoding import UNLABELLED, Encoded, TokenLimits, one_row_a_sample
from axformer.data.rows import Rows
from axformer.errors import CheckpointError
from axformer.tasks.divergence import Predicted, where
from axformer.tasks.language_models import LanguageModelling
from axformer.tasks.texts import tokenize_texts

MASKED_SHARE = 0.15
"""The share of tokens that BERT and its successors are trained to guess."""
MASK_SEED = 0
"""Seeds a row's mask together with its tokens, so it is the same in every trial and at any place in the file."""


class MaskedLanguageModelling(LanguageModelling):
    """A fixed set of hidden tokens is predicted.

    All of them become the mask token. In training, a tenth is replaced and a tenth stays, so that the model learns about
    visible tokens; in a measurement that would only add noise.
    """

    name = "masked_lm"
    pipeline = "fill-mask"

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:  # noqa: ARG002
        mask = tokenizer.mask_token_id
        if mask is None:
            raise CheckpointError(
                "the tokenizer has no mask token; save the checkpoint with the tokenizer it was trained with"
            )
        features, cut = tokenize_texts(rows, tokenizer, limits, return_special_tokens_mask=True)
        labels = []
        special = features.pop("special_tokens_mask")
        for row, (ids, fixed) in enumerate(zip(features["input_ids"], special, strict=True), start=1):
            hidden = hidden_places(ids, fixed)
            if not hidden:
                raise rows.error(row, "it has no token that could be masked; leave the row out")
            labels.append([token if position in hidden else UNLABELLED for position, token in enumerate(ids)])
            for position in hidden:
                ids[position] = mask
        return one_row_a_sample(features, labels, cut, per_token=True)

    def predicted(self, output: Any, batch: Batch) -> Predicted:
        return where(output.logits, batch.labels != UNLABELLED)


def hidden_places(ids: Sequence[int], special: Sequence[int]) -> set[int]:
    """The positions of a row to hide: each with the same probability, and at least one if possible.

    Args:
        special: 1 at tokens that are never hidden, such as ``[CLS]``.
    """
    positions = [position for position, fixed in enumerate(special) if not fixed]
    if not positions:
        return set()
    chance = np.random.default_rng([MASK_SEED, *ids])
    drawn = {
        position
        for position, number in zip(positions, chance.random(len(positions)), strict=True)
        if number < MASKED_SHARE
    }
    return drawn or {positions[int(chance.integers(len(positions)))]}

"""Masked language modelling: predict hidden tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from axformer.data.batches import Batch
from axformer.data.encoding import UNLABELLED, Encoded, one_row_a_sample
from axformer.data.rows import Rows
from axformer.errors import CheckpointError
from axformer.tasks.divergence import Predicted, where
from axformer.tasks.guess import Guess, guess_evenly
from axformer.tasks.standing import Standing
from axformer.tasks.texts import tokenize_texts
from axformer.tasks.token_losses import (
    LANGUAGE_CAUSES,
    TokenCounts,
    as_statistics,
    language_metrics,
    mean_losses,
    token_counts,
)

MASKED_SHARE = 0.15
"""The share of tokens that BERT and its successors are trained to guess."""
MASK_SEED = 0
"""Seeds a row's mask together with its tokens, so it is the same in every trial and at any place in the file."""


class MaskedLanguageModelling:
    """The loss is the mean cross-entropy over a fixed set of hidden tokens.

    All of them become the mask token. In training, a tenth is replaced and a tenth stays, so that the model learns about
    visible tokens; in a measurement that would only add noise.
    """

    name = "masked_lm"
    pooled = False
    pipeline = "fill-mask"

    def encode(
        self,
        rows: Rows,
        tokenizer: Any,
        config: Any,  # noqa: ARG002 - the protocol's signature
        max_length: int | None,
        max_tokens: int | None,
    ) -> Encoded:
        mask = tokenizer.mask_token_id
        if mask is None:
            raise CheckpointError(
                "the tokenizer has no mask token; save the checkpoint with the tokenizer it was trained with"
            )
        features, cut = tokenize_texts(rows, tokenizer, max_length, max_tokens, return_special_tokens_mask=True)
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

    def inputs(
        self, rows: Rows, tokenizer: Any, config: Any, max_length: int | None, max_tokens: int | None
    ) -> Encoded:
        """The same: a text is its own answer."""
        return self.encode(rows, tokenizer, config, max_length, max_tokens)

    def losses(self, output: Any, batch: Batch) -> Tensor:
        return mean_losses(output.logits, batch.labels)

    def predicted(self, output: Any, batch: Batch) -> Predicted:
        return where(output.logits, batch.labels != UNLABELLED)

    def answers(self, output: Any, batch: Batch) -> list[TokenCounts]:
        return token_counts(output.logits, batch.labels)

    def statistics(self, answers: Sequence[TokenCounts], encoded: Encoded) -> np.ndarray:  # noqa: ARG002
        return as_statistics(answers)

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        return language_metrics(statistics)

    def correct(self, statistics: np.ndarray) -> None:
        """None: a text is predicted better or worse, not right or wrong."""

    def guess(self, encoded: Encoded, config: Any) -> Guess:
        return guess_evenly(config.vocab_size, encoded.samples)

    def standing(self, answers: Sequence[TokenCounts], encoded: Encoded, config: Any) -> Standing:  # noqa: ARG002
        return Standing(LANGUAGE_CAUSES, is_bar=False)


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

"""Causal language modelling: predict the next token."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from axformer.data.batches import Batch
from axformer.data.encoding import UNLABELLED, Encoded, one_row_a_sample
from axformer.data.rows import Rows
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

PREDICTED_EVERY = 8
"""Stride of the positions at which two models are compared; all positions times the vocabulary would be too many numbers."""


class CausalLanguageModelling:
    """The loss is the mean cross-entropy over a text's tokens, except the first, which is not predicted."""

    name = "causal_lm"
    pooled = False
    pipeline = "text-generation"

    def encode(
        self,
        rows: Rows,
        tokenizer: Any,
        config: Any,  # noqa: ARG002 - the protocol's signature
        max_length: int | None,
        max_tokens: int | None,
    ) -> Encoded:
        features, cut = tokenize_texts(rows, tokenizer, max_length, max_tokens)
        for row, ids in enumerate(features["input_ids"], start=1):
            if len(ids) < 2:
                raise rows.error(row, "it has one token, so there is none to predict; leave the row out")
        labels = [[UNLABELLED, *ids[1:]] for ids in features["input_ids"]]
        return one_row_a_sample(features, labels, cut, per_token=True)

    def inputs(
        self, rows: Rows, tokenizer: Any, config: Any, max_length: int | None, max_tokens: int | None
    ) -> Encoded:
        """The same: a text is its own answer."""
        return self.encode(rows, tokenizer, config, max_length, max_tokens)

    def losses(self, output: Any, batch: Batch) -> Tensor:
        return mean_losses(*_aligned(output, batch))

    def predicted(self, output: Any, batch: Batch) -> Predicted:
        logits, labels = _aligned(output, batch)
        return where(logits[:, ::PREDICTED_EVERY], labels[:, ::PREDICTED_EVERY] != UNLABELLED)

    def answers(self, output: Any, batch: Batch) -> list[TokenCounts]:
        return token_counts(*_aligned(output, batch))

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


def _aligned(output: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """Align each prediction with the next token."""
    return output.logits[:, :-1], batch.labels[:, 1:]

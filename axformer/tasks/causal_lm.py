"""Causal language modelling: predict the next token."""

from typing import Any

from torch import Tensor

from axformer.data.batches import Batch
from axformer.data.encoding import UNLABELLED, Encoded, TokenLimits, one_row_a_sample
from axformer.data.rows import Rows
from axformer.tasks.divergence import Predicted, where
from axformer.tasks.language_models import LanguageModelling
from axformer.tasks.texts import tokenize_texts

PREDICTED_EVERY = 8
"""Stride of the positions at which two models are compared; all positions times the vocabulary would be too many numbers."""


class CausalLanguageModelling(LanguageModelling):
    """Every token of a text is predicted, except the first."""

    name = "causal_lm"
    pipeline = "text-generation"

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:  # noqa: ARG002
        features, cut = tokenize_texts(rows, tokenizer, limits)
        for row, ids in enumerate(features["input_ids"], start=1):
            if len(ids) < 2:
                raise rows.error(row, "it has one token, so there is none to predict; leave the row out")
        labels = [[UNLABELLED, *ids[1:]] for ids in features["input_ids"]]
        return one_row_a_sample(features, labels, cut, per_token=True)

    def aligned(self, output: Any, batch: Batch) -> tuple[Tensor, Tensor]:
        """Each prediction with the next token."""
        return output.logits[:, :-1], batch.labels[:, 1:]

    def predicted(self, output: Any, batch: Batch) -> Predicted:
        logits, labels = self.aligned(output, batch)
        return where(logits[:, ::PREDICTED_EVERY], labels[:, ::PREDICTED_EVERY] != UNLABELLED)

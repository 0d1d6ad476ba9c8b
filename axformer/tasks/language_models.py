"""What masked and causal language models share: losses of tokens, kept as sums, since perplexity is over all tokens of a data
set, not a mean of means."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch
from axformer.data.encoding import UNLABELLED, Encoded, TokenLimits
from axformer.data.rows import Rows
from axformer.tasks.guess import Guess, guess_evenly
from axformer.tasks.standing import LabelAgreement

MAX_EXPONENT = 700.0
"""Larger powers of e overflow; a perplexity of 1e304 says as much as an infinite one, and JSON can hold it."""

TokenCounts = tuple[float, int, int]
"""For one model row: the sum of its tokens' cross-entropies in nats, the number of predicted tokens, and of correct ones."""


class LanguageModelling(ABC):
    """The loss is the mean cross-entropy over the predicted tokens of a text, which are its own answer."""

    pooled = False

    @abstractmethod
    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        """See :meth:`axformer.tasks.base.Task.encode`."""

    def inputs(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        return self.encode(rows, tokenizer, config, limits)

    def aligned(self, output: Any, batch: Batch) -> tuple[Tensor, Tensor]:
        """The logits, shape (rows, tokens, vocabulary), and the label of each, ``UNLABELLED`` where nothing is predicted."""
        return output.logits, batch.labels

    def losses(self, output: Any, batch: Batch) -> Tensor:
        losses, predicted = _losses(*self.aligned(output, batch))
        return losses.sum(dim=-1) / predicted.sum(dim=-1)

    def answers(self, output: Any, batch: Batch) -> list[TokenCounts]:
        logits, labels = self.aligned(output, batch)
        losses, predicted = _losses(logits, labels)
        hits = (logits.argmax(dim=-1) == labels) & predicted
        columns = losses.sum(dim=-1, dtype=torch.float64), predicted.sum(dim=-1), hits.sum(dim=-1)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def statistics(self, answers: Sequence[TokenCounts], encoded: Encoded) -> np.ndarray:  # noqa: ARG002
        return np.array(answers, dtype=float)

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        """Perplexity and accuracy over all predicted tokens."""
        loss, tokens, hits = statistics.sum(axis=0).tolist()
        return {"perplexity": math.exp(min(loss / tokens, MAX_EXPONENT)), "accuracy": hits / tokens}

    def correct(self, statistics: np.ndarray) -> None:  # noqa: ARG002
        """None: a text is predicted better or worse, not right or wrong."""
        return

    def guess(self, encoded: Encoded, config: Any) -> Guess:
        return guess_evenly(config.vocab_size, encoded.samples)

    def standing(self, answers: Sequence[TokenCounts], encoded: Encoded, config: Any) -> LabelAgreement:  # noqa: ARG002
        causes = (
            "whether the tokenizer is the one that the model was trained with, whether the text column is the right one, and "
            "whether the model was trained at all"
        )
        return LabelAgreement(causes, is_bar=False)


def _losses(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Token losses, 0 where nothing is predicted, and where something is; only labelled positions take memory."""
    predicted = labels != UNLABELLED
    losses = torch.zeros(labels.shape, dtype=logits.dtype, device=logits.device)
    losses[predicted] = functional.cross_entropy(logits[predicted], labels[predicted], reduction="none")
    return losses, predicted

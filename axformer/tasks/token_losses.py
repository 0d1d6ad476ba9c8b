"""Token losses of language models, as sums: perplexity is over all tokens of a data set, not a mean of means."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from axformer.data.encoding import UNLABELLED

MAX_EXPONENT = 700.0
"""Larger powers of e overflow; a perplexity of 1e304 says as much as an infinite one, and JSON can hold it."""
LANGUAGE_CAUSES = (
    "whether the tokenizer is the one that the model was trained with, whether the text column is the right one, and whether "
    "the model was trained at all"
)
"""What to check if a model predicts tokens worse than chance."""

TokenCounts = tuple[float, int, int]
"""For one model row: the sum of its tokens' cross-entropies in nats, the number of predicted tokens, and of correct ones."""


def mean_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of each row over its labelled tokens.

    Args:
        logits: shape (rows, tokens, vocabulary).
        labels: shape (rows, tokens), ``UNLABELLED`` where nothing is predicted.
    """
    losses, predicted = _losses(logits, labels), labels != UNLABELLED
    return losses.sum(dim=-1) / predicted.sum(dim=-1)


def token_counts(logits: Tensor, labels: Tensor) -> list[TokenCounts]:
    """Sums over each row; shapes as in :func:`mean_losses`."""
    losses, predicted = _losses(logits, labels), labels != UNLABELLED
    hits = (logits.argmax(dim=-1) == labels) & predicted
    columns = losses.sum(dim=-1, dtype=torch.float64), predicted.sum(dim=-1), hits.sum(dim=-1)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def language_metrics(statistics: np.ndarray) -> dict[str, float]:
    """Perplexity and accuracy over all predicted tokens; a row holds the columns of ``TokenCounts``."""
    loss, tokens, hits = statistics.sum(axis=0).tolist()
    return {"perplexity": math.exp(min(loss / tokens, MAX_EXPONENT)), "accuracy": hits / tokens}


def as_statistics(answers: Sequence[TokenCounts]) -> np.ndarray:
    """The statistics, one row per sample, for samples of one model row each."""
    return np.array(answers, dtype=float)


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Token losses, shape (rows, tokens), 0 where nothing is predicted; computed at labelled positions only, to save memory."""
    predicted = labels != UNLABELLED
    losses = torch.zeros(labels.shape, dtype=logits.dtype, device=logits.device)
    losses[predicted] = functional.cross_entropy(logits[predicted], labels[predicted], reduction="none")
    return losses

"""Which texts lie nearest to a query among the vectors of a corpus, and how well a search finds what belongs together."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

NEAREST = 10
"""Neighbours that are compared, and places of a result list that count."""
_AT_ONCE = 1024
"""Queries whose similarities are in memory together."""


@dataclass(frozen=True)
class Search:
    """Queries over a corpus; copies of a text are in the corpus once."""

    queries: list[int]
    """The model row of each query."""
    corpus: list[int]
    """The model row of each text that is searched."""
    own: list[int]
    """For each query the place in the corpus of what belongs to it: itself or its partner."""
    is_itself: bool
    """Whether queries are texts of the corpus, and none of them finds itself."""

    @property
    def depth(self) -> int:
        """Neighbours that a query has, at most :data:`NEAREST`."""
        return min(NEAREST, len(self.corpus) - self.is_itself)

    def nearest(self, vectors: Tensor, measure: str) -> Tensor:
        """The nearest texts of each query, best first, by their places in the corpus; shape (queries, depth).

        Args:
            vectors: of all model rows, shape (model rows, numbers).
            measure: ``cosine``, ``dot`` or ``euclidean``.
        """
        known, asked = vectors[self.corpus], vectors[self.queries]
        if measure == "cosine":
            known, asked = functional.normalize(known, dim=-1), functional.normalize(asked, dim=-1)
        offset = known.square().sum(dim=-1) / 2 if measure == "euclidean" else known.new_zeros(len(known))
        own, found = torch.tensor(self.own), []
        for start in range(0, len(asked), _AT_ONCE):
            scores = asked[start : start + _AT_ONCE] @ known.T - offset
            if self.is_itself:
                scores.scatter_(1, own[start : start + _AT_ONCE, None], -torch.inf)
            found.append(scores.topk(self.depth, dim=-1).indices)
        return torch.cat(found)


def overlap(first: Tensor, second: Tensor) -> np.ndarray:
    """The share of each row's numbers that are also in the other's row; shape (rows,)."""
    return (first[:, :, None] == second[:, None, :]).any(dim=-1).double().mean(dim=-1).numpy()


def gains(found: Tensor, own: list[int]) -> np.ndarray:
    """The discounted gain of each query's one right text, 0 where it is not found (nDCG with one relevant text)."""
    hits = (found == torch.tensor(own)[:, None]).double().numpy()
    return np.asarray(hits @ (1 / np.log2(np.arange(found.shape[1]) + 2)))

"""Attention of one query of each row, without the keys and values of all tokens.

With ``q`` the query of a head and ``x`` what comes into the block, a score is ``q · (Wk x) = (Wkᵀ q) · x`` but for what the
bias adds to all scores of the query alike, which the softmax takes out. The context is ``Σ p (Wv x + b) = Wv (Σ p x) + b Σ p``.
So the two largest products of the block need to run once a row, not once a token.
"""

import torch
from torch import Tensor

from axformer.architectures.base import PlainAttention
from axformer.architectures.top_k import keep_top_k


def context_at(attention: PlainAttention, hidden: Tensor, mask: Tensor | None, tokens: Tensor) -> Tensor:
    """What attention brings together for one token of each row.

    Args:
        attention: the projections.
        hidden: what comes into the block, shape (rows, tokens, hidden).
        mask: None, or what broadcasts to (rows, 1, tokens, tokens): numbers are added to the scores, where it is false nothing
            is attended to.
        tokens: which token asks, shape (rows,).

    Returns:
        Shape (rows, 1, heads x head size).
    """
    rows, heads = torch.arange(tokens.shape[0], device=hidden.device), attention.heads
    query = _by_head(attention.query(hidden[rows, tokens]).T.contiguous(), heads).transpose(1, 2)
    asked = (query @ _by_head(attention.key.weight, heads)).transpose(0, 1)
    scores = asked @ hidden.transpose(1, 2) * attention.scaling
    if mask is not None:
        asked_of = mask.expand(rows.shape[0], -1, -1, -1)[rows, :, tokens if mask.shape[2] > 1 else 0]
        scores = scores.masked_fill(~asked_of, -torch.inf) if mask.dtype == torch.bool else scores + asked_of
    probabilities = scores.softmax(dim=-1)
    if attention.top_k is not None:
        probabilities = keep_top_k(probabilities, attention.top_k)
    mixed = (probabilities @ hidden).transpose(0, 1)
    context = (mixed @ _by_head(attention.value.weight, heads).transpose(1, 2)).transpose(0, 1)
    if attention.value.bias is not None:
        context = context + probabilities.sum(dim=-1, keepdim=True) * attention.value.bias.view(heads, -1)
    return context.flatten(start_dim=1)[:, None]


def _by_head(outputs: Tensor, heads: int) -> Tensor:
    """Rows of projections in groups of each head's: of (heads x head size, n) the shape (heads, head size, n)."""
    return outputs.view(heads, -1, outputs.shape[-1])

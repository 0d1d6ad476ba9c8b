"""Attention for one query of each row, without computing keys and values of all tokens.

With ``q`` the query of a head and ``x`` the block's input, a score is ``q · (Wk x) = (Wkᵀ q) · x`` up to the contribution of
the bias, which is the same for all scores of the query, so the softmax cancels it. The context is
``Σ p (Wv x + b) = Wv (Σ p x) + b Σ p``. The two largest products of the block then run once per row, not once per token.
"""

import torch
from torch import Tensor

from axformer.architectures.base import PlainAttention
from axformer.architectures.hard_attention import keep_top_k


def context_at(attention: PlainAttention, hidden: Tensor, mask: Tensor | None, tokens: Tensor) -> Tensor:
    """The attention context of one token of each row.

    Args:
        hidden: the block's input, shape (rows, tokens, hidden).
        mask: None, or a tensor that broadcasts to (rows, 1, tokens, tokens): numbers are added to the scores, and False masks a
            position out.
        tokens: the position of the query, shape (rows,).

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
    """Group the rows of projections by head: from (heads x head size, n) to (heads, head size, n)."""
    return outputs.view(heads, -1, outputs.shape[-1])

"""Hard attention (section III-B), as an attention function that transformers can dispatch to.

Every query keeps its K largest attention probabilities after the softmax; the others become 0, and the kept ones are not
renormalised. K is an attribute of the attention module (``hard_attention_top_k``), so layers may differ; a module without it
computes plain soft attention in the same arithmetic. That matters: a sample that hard attention cannot change keeps its loss
bit for bit, and never counts as helped.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.profiler import record_function
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

ATTENTION_NAME = "axformer"
TOP_K_ATTRIBUTE = "hard_attention_top_k"
READ_ATTRIBUTE = "attention_read_position"
"""Attribute of a module while only one query of each row is needed: its position, shape (rows,)."""
FULL_ROWS_ATTRIBUTE = "softmax_in_full_rows"
"""Attribute of a module whose softmax may round short rows differently if that is faster."""
ATTENTION_DIMENSIONS = 4
_LANES = 16
"""float32 numbers in a vector register."""
SORTING_CORES = 8
"""With more cores, ``topk``, which uses all of them, is as fast as sorting, which uses one."""
SORT = "axformer::sort"
"""Name of the sort in PyTorch's profiler, which does not see NumPy."""


def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Soft attention, or hard attention if the module has it on.

    Args:
        query: shape (batch, heads, tokens, head size).
        key, value: the same shape, with as many heads or fewer (grouped queries).
        attention_mask: added to the scores; broadcasts to (batch, heads, tokens, tokens).

    Returns:
        The context, shape (batch, tokens, heads, head size), and the attention probabilities. If only one query is needed,
        its context is repeated at all positions.
    """
    tokens, read = query.shape[2], getattr(module, READ_ATTRIBUTE, None)
    if read is not None:
        query = _at(query, read)
        attention_mask = None if attention_mask is None else _at(attention_mask, read)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:  # grouped queries: several heads share a key and a value
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    scores = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if attention_mask is not None:
        scores = scores + attention_mask
    probabilities = _softmax_in_full_rows(scores) if hasattr(module, FULL_ROWS_ATTRIBUTE) else scores.softmax(dim=-1)
    top_k = getattr(module, TOP_K_ATTRIBUTE, None)
    if top_k is not None:
        probabilities = keep_top_k(probabilities, top_k)
    probabilities = nn.functional.dropout(probabilities, p=dropout, training=module.training)
    context = (probabilities @ value).transpose(1, 2).contiguous()
    return context.expand(-1, tokens, -1, -1), probabilities


def _softmax_in_full_rows(scores: Tensor) -> Tensor:
    """The softmax over keys. On a CPU, rows that do not fill a vector register take several times as long as full ones."""
    missing = _LANES - scores.shape[-1]
    if missing <= 0 or scores.device.type != "cpu":
        return scores.softmax(dim=-1)
    full = nn.functional.pad(scores, (0, missing), value=-torch.inf)
    return full.softmax(dim=-1)[..., :-missing]


def _at(values: Tensor, read: Tensor) -> Tensor:
    """One query of each row: of (batch or 1, heads, queries or 1, n) the shape (batch, heads, 1, n)."""
    rows = torch.arange(len(read), device=values.device)
    shape = len(read), *values.shape[1:]
    return values.expand(shape)[rows, :, read if values.shape[2] > 1 else 0][:, :, None]


def keep_top_k(probabilities: Tensor, k: int) -> Tensor:
    """Attention probabilities with all but the ``k`` largest of each query set to 0, not renormalised.

    On a CPU, PyTorch's ``topk`` takes longer than all projections of a small layer. NumPy sorts rows in vector registers, about
    ten times as fast on one core, and the K-th largest value is then the threshold. Both ways keep exactly the same entries.

    Args:
        probabilities: shape (batch, heads, queries, keys), none below 0.
        k: number of probabilities to keep; with at most this many keys, nothing changes.
    """
    keys_there = probabilities.shape[-1]
    if torch.compiler.is_exporting():  # one graph serves all lengths
        k = torch.sym_min(k, keys_there)  # type: ignore[no-untyped-call]
    elif k >= keys_there:
        return probabilities
    kept = _kept_by_sorting(probabilities.detach(), k) if _is_sorted_faster(probabilities) else None
    if kept is not None:
        return kept * probabilities
    values, keys = probabilities.topk(k, dim=-1, sorted=False)
    return probabilities.new_zeros(probabilities.shape).scatter(-1, keys, values)


def _is_sorted_faster(probabilities: Tensor) -> bool:
    is_seen_by_numpy = type(probabilities) is Tensor and probabilities.device.type == "cpu"
    is_recorded = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
    return (
        is_seen_by_numpy
        and not is_recorded
        and probabilities.dtype is torch.float32
        and torch.get_num_threads() <= SORTING_CORES
    )


def _kept_by_sorting(probabilities: Tensor, k: int) -> Tensor | None:
    """1 at the ``k`` largest entries, 0 elsewhere; None if the next entry is equal, in which case ``topk`` decides."""
    with record_function(SORT):
        ascending = np.sort(probabilities.numpy(), axis=-1)
    place = probabilities.shape[-1] - k
    least, below = ascending[..., place], ascending[..., place - 1]
    if np.any((least == below) & (least > 0)):
        return None
    kept = torch.empty_like(probabilities)
    return torch.ge(probabilities, torch.from_numpy(least)[..., None], out=kept)


class HardAttentionDropout(nn.Dropout):
    """Dropout of attention probabilities, preceded by hard attention if ``hard_attention_top_k`` is set on it.

    For families that compute attention inside their own modules instead of dispatching to a function: the dropout is the only
    place that sees the probabilities.
    """

    @classmethod
    def put_into(cls, modules: Iterable[Any]) -> None:
        """Replace the ``dropout`` of attention modules."""
        for module in modules:
            module.dropout = cls(module.dropout.p).train(module.dropout.training)

    def forward(self, probabilities: Tensor) -> Tensor:
        """Takes probabilities of shape (batch, heads, queries, keys); other tensors (XLNet's output) pass unchanged."""
        top_k = getattr(self, TOP_K_ATTRIBUTE, None)
        is_attention = probabilities.dim() == ATTENTION_DIMENSIONS
        return super().forward(keep_top_k(probabilities, top_k) if is_attention and top_k else probabilities)


AttentionInterface.register(ATTENTION_NAME, attention_forward)
AttentionMaskInterface.register(ATTENTION_NAME, eager_mask)

"""The K largest attention probabilities of each query: what hard attention keeps (section III-B).

PyTorch's ``topk`` takes longer on a CPU than all projections of a small layer. NumPy sorts rows in vector registers, some ten
times as fast on one core, and the K-th largest number then tells what is kept. Either way the same is kept, to the last bit.
"""

import numpy as np
import torch
from torch import Tensor
from torch.profiler import record_function

SORTING_CORES = 8
"""With more, ``topk``, which uses all of them, is as fast as sorting, which uses one."""
SORT = "axformer::sort"
"""Its name for PyTorch's profiler, which does not see NumPy."""


def keep_top_k(probabilities: Tensor, k: int) -> Tensor:
    """Attention probabilities with all but the ``k`` largest of each query set to 0, not renormalised.

    Args:
        probabilities: shape (batch, heads, queries, keys), none below 0.
        k: how many to keep; with as many keys or fewer nothing changes.
    """
    keys_there = probabilities.shape[-1]
    if torch.compiler.is_exporting():  # the graph is one for all lengths
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
    """1 where one of the ``k`` largest stands, else 0; None if the next one is as large, which ``topk`` has to settle.

    Where the k-th largest is 0, all is kept: what is 0 stays 0.
    """
    with record_function(SORT):
        ascending = np.sort(probabilities.numpy(), axis=-1)
    place = probabilities.shape[-1] - k
    least, below = ascending[..., place], ascending[..., place - 1]
    if np.any((least == below) & (least > 0)):
        return None
    kept = torch.empty_like(probabilities)
    return torch.ge(probabilities, torch.from_numpy(least)[..., None], out=kept)

"""The K largest attention probabilities of each query: what hard attention keeps (section III-B).

On a CPU, PyTorch's ``topk`` takes longer than all projections of a small layer. NumPy sorts rows in vector registers, about ten
times as fast on one core, and the K-th largest value is then the threshold. Both ways keep exactly the same entries.
"""

import numpy as np
import torch
from torch import Tensor
from torch.profiler import record_function

SORTING_CORES = 8
"""With more cores, ``topk``, which uses all of them, is as fast as sorting, which uses one."""
SORT = "axformer::sort"
"""Name of the sort in PyTorch's profiler, which does not see NumPy."""


def keep_top_k(probabilities: Tensor, k: int) -> Tensor:
    """Attention probabilities with all but the ``k`` largest of each query set to 0, not renormalised.

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

"""Count the floating-point operations of anything that runs in PyTorch; a multiplication and an addition are two."""

from collections.abc import Callable

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

_ATTENTION_ON_CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_PACKED_LINEAR = torch.ops.mkldnn._linear_pointwise


def count_flops(work: Callable[[], object]) -> int:
    """Operations of all matrix multiplications and attentions in ``work``; element-wise ones are not counted."""
    with FlopCounterMode(
        display=False, custom_mapping={_ATTENTION_ON_CPU: _attention, _PACKED_LINEAR: _linear}
    ) as counter:
        work()
    return int(counter.get_total_flops())


def _attention(query: torch.Size, key: torch.Size, value: torch.Size, *_: object, **__: object) -> int:
    """PyTorch's counter knows the attention kernels of accelerators only."""
    return int(sdpa_flop_count(query, key, value))  # type: ignore[no-untyped-call]


def _linear(inputs: torch.Size, weight: torch.Size, *_: object, **__: object) -> int:
    return 2 * inputs.numel() * weight[0]

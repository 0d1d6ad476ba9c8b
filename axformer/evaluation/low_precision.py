"""The 16-bit number format of a device, and how fast it multiplies there."""

import torch
from torch.nn.functional import linear

_SHAPE = 512, 512, 2048
_REPEATS = 5


def low_precision(device: torch.device) -> torch.dtype:
    """The fastest 16-bit number format of a device."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.float16
    return torch.bfloat16


@torch.inference_mode()
def gain_in_rate(device: torch.device) -> float:
    """Measure how many times as fast as in float32 the device multiplies matrices in low precision."""
    return _seconds(torch.float32, device) / _seconds(low_precision(device), device)


def _seconds(dtype: torch.dtype, device: torch.device) -> float:
    # This import searches for CUDA's compiler and prints a warning on machines without a GPU, so it is not at the top.
    from torch.utils.benchmark import Timer

    rows, inputs, outputs = _SHAPE
    given = {
        "linear": linear,
        "left": torch.ones(rows, inputs, dtype=dtype, device=device),
        "right": torch.ones(outputs, inputs, dtype=dtype, device=device),
    }
    timer = Timer("linear(left, right)", globals=given, num_threads=torch.get_num_threads())
    return min(timer.timeit(2).mean for _ in range(_REPEATS))

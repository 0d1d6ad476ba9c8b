"""The number format of the first look at a trial."""

import torch

_BFLOAT16_OF_CPUS = "avx512_bf16", "amx_bf16", "bf16"
"""PyTorch's names for such instructions: of x86, and of ARM."""


def low_precision(device: torch.device) -> torch.dtype:
    """The fastest number format of 16 bits on a device."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.float16
    return torch.bfloat16


def is_slow(device: torch.device) -> bool:
    """Whether a first look takes longer than float32 itself: on a CPU that has no instructions for bfloat16."""
    known = torch.cpu.get_capabilities()
    return device.type == "cpu" and not any(known.get(name) for name in _BFLOAT16_OF_CPUS)


def name_of(dtype: torch.dtype) -> str:
    """A number format's name, for example ``bfloat16``."""
    return str(dtype).removeprefix("torch.")

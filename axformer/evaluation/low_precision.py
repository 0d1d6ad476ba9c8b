"""The number format of the first look at a trial."""

import torch


def low_precision(device: torch.device) -> torch.dtype:
    """The fastest number format of 16 bits on a device."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.float16
    return torch.bfloat16


def name_of(dtype: torch.dtype) -> str:
    """A number format's name, for example ``bfloat16``."""
    return str(dtype).removeprefix("torch.")

"""How much memory a process took."""

import resource
import sys

import torch

_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # getrusage counts bytes there, KiB on Linux


def peak_bytes() -> int:
    """The most memory that this process has held since it began.

    On Linux a new process starts with what its parent had held.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT


def device_peak_bytes(device: str) -> int | None:
    """The most that PyTorch has held on a GPU since the process began; null on a CPU."""
    return int(torch.cuda.max_memory_allocated(device)) if torch.device(device).type == "cuda" else None

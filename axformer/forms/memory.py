"""The peak memory of a process."""

import re
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_KIB = 1024
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else _KIB  # getrusage counts bytes there, KiB on Linux


def peak_bytes() -> int:
    """Peak memory of this process since it started.

    On Linux it is read from ``/proc``, because ``getrusage`` would include the parent's memory there. Elsewhere ``getrusage``
    is used.
    """
    found = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text(encoding="utf-8")) if _STATUS.is_file() else None
    if found is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT
    return int(found[1]) * _KIB


def device_peak_bytes(device: str) -> int | None:
    """Peak memory of PyTorch on a GPU since the process started; None on a CPU."""
    import torch  # only here: programs without PyTorch measure memory too

    return int(torch.cuda.max_memory_allocated(device)) if torch.device(device).type == "cuda" else None

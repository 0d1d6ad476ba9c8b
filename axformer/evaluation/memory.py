"""Memory: how much is free, how much of it the activations of a pass may have, and the peak of a process."""

import re
import resource
import sys
from pathlib import Path

import psutil
import torch

FREE_SHARE = 0.7
"""Share of the memory that is free when a pass begins. The rest is for the activations of one batch, for cut copies of layers,
and for gaps between allocations."""
_CGROUP = Path("/sys/fs/cgroup")
_STATUS = Path("/proc/self/status")
_KIB = 1024
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else _KIB  # getrusage counts bytes there, KiB on Linux


def cache_budget(knob: int | None, device: str) -> int:
    """Bytes of activations to keep on a device: the knob's value, or a share of the memory that is free there now.

    Args:
        knob: ``cache_budget`` of :class:`axformer.config.PassConfig`.
        device: the device of the samples.
    """
    return int(FREE_SHARE * free_bytes(device)) if knob is None else knob


def free_bytes(device: str) -> int:
    """Free memory of a CUDA device, including memory that PyTorch reserves without using it; or of this machine or
    container."""
    if torch.device(device).type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    available = int(psutil.virtual_memory().available)
    left = container_left(_CGROUP)
    return available if left is None else min(available, left)


def total_bytes(device: str) -> int:
    """Total memory of a CUDA device, or of this machine or container."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    machine = int(psutil.virtual_memory().total)
    limit = container_limit(_CGROUP)
    return machine if limit is None else min(machine, limit)


def container_limit(cgroup: Path) -> int | None:
    """The memory limit of the container in bytes (cgroup v2); None if there is no limit."""
    limit = cgroup / "memory.max"
    if not limit.is_file() or (most := limit.read_text().strip()) == "max":
        return None
    return int(most)


def container_left(cgroup: Path) -> int | None:
    """Bytes left below the container's limit (cgroup v2); None if there is no limit. Inactive file pages count as free."""
    most = container_limit(cgroup)
    if most is None:
        return None
    stat = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    used = int((cgroup / "memory.current").read_text()) - int(stat["inactive_file"])
    return max(0, most - used)


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
    return int(torch.cuda.max_memory_allocated(device)) if torch.device(device).type == "cuda" else None

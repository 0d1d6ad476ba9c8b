"""The default amount of memory for the activations of a pass."""

from pathlib import Path

import psutil
import torch

FREE_SHARE = 0.7
"""Share of the memory that is free when a pass begins. The rest is for the activations of one batch, for cut copies of layers,
and for gaps between allocations."""
_CGROUP = Path("/sys/fs/cgroup")


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

"""Versions and hardware that produced a result, so that its figures can be judged and reproduced."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from axformer import __version__
from axformer.reporting.commit import commit


def describe(device: str) -> dict[str, Any]:
    """Versions of the software and names of the hardware."""
    return {
        "axformer": __version__,
        "commit": commit(),
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device": _device_name(device),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return _processor_name() or platform.machine()


def _processor_name() -> str:
    """The processor's name from Linux, or else from Python, which may be empty."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())

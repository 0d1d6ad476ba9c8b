"""Versions and hardware that produced a result, so that its figures can be judged and reproduced."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from axformer import __version__


def describe(device: str) -> dict[str, Any]:
    """Versions of the software and names of the hardware."""
    import torch  # here, since workers look only the commit up

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
        import torch

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


COMMIT = "AXFORMER_COMMIT"
"""Environment variable that names the commit if there is no readable checkout."""


def commit() -> str | None:
    """The commit from the environment, or of the checkout that holds this package; None if neither is known.

    Workers look it up for their jobs, which cannot read the checkout.
    """
    if named := os.environ.get(COMMIT):
        return named
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - arguments of our own
    except OSError:
        return None
    return found.stdout.strip() or None

"""The disk below a directory."""

import shutil
from pathlib import Path


def free_bytes(directory: Path) -> int:
    """Free bytes of the disk that a directory lies on, or will lie on."""
    there = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free

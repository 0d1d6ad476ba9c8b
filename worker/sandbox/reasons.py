"""Names for the libraries' errors, for the worker, which does not import these libraries."""

import errno
from typing import Literal

import torch
from safetensors import SafetensorError

from axformer.errors import (
    ArtifactError,
    AxFormerError,
    CheckpointError,
    ConfigError,
    DataError,
    InputError,
    PlanError,
    PoorModelError,
)

Name = Literal[
    "InputError", "ConfigError", "CheckpointError", "DataError", "PoorModelError", "PlanError", "ArtifactError"
]
Reason = Literal["out_of_memory", "disk_full", "unforeseen"]

_NAMES: tuple[tuple[type[AxFormerError], Name], ...] = (
    (ConfigError, "ConfigError"),
    (CheckpointError, "CheckpointError"),
    (DataError, "DataError"),
    (PoorModelError, "PoorModelError"),
    (PlanError, "PlanError"),
    (InputError, "InputError"),
    (ArtifactError, "ArtifactError"),
)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_CPU_OUT_OF_MEMORY = "can't allocate memory"  # the text of PyTorch's CPU allocator in a plain RuntimeError


def error_name(error: AxFormerError) -> Name | None:
    """The name of a refusal that the job's owner is shown; None for other errors."""
    return next((name for kind, name in _NAMES if isinstance(error, kind)), None)


def reason_of(error: Exception) -> Reason:
    """Classify an error of a library."""
    if _is_out_of_memory(error):
        return "out_of_memory"
    return "disk_full" if _is_disk_full(error) else "unforeseen"


def _is_disk_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_SPACE
    # Safetensors quotes the system's error number in the text of its own error.
    return isinstance(error, SafetensorError) and any(f"(os error {number})" in str(error) for number in _NO_SPACE)


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and _CPU_OUT_OF_MEMORY in str(error)

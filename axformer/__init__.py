"""AxFormer: shrink and speed up a fine-tuned transformer without retraining it.

``import axformer`` is light: PyTorch is imported when one of its functions is first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"
"""The version of library, commands and service alike; the package is built with it."""
__all__ = ["PruneCallback", "analyze", "certify", "load", "prune"]

_HOMES = {
    "PruneCallback": "axformer.trainer",
    "analyze": "axformer.analyzing",
    "certify": "axformer.gate",
    "load": "axformer.artifact",
    "prune": "axformer.pruning",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'axformer' has no attribute '{name}'")

"""Load the compact form."""

from pathlib import Path
from typing import Any

from axformer.artifact import load as load_compact


def load(directory: Path, device: str) -> Any:
    """The compact model, in evaluation mode.

    Raises:
        ArtifactError: there is none, or it is damaged.
    """
    return load_compact(directory).to(device)

"""Load the compact form."""

from pathlib import Path
from typing import Any

from axformer.artifact import load as load_compact


def load(directory: Path, device: str) -> Any:
    """The compact model, in evaluation mode.

    Raises:
        ArtifactError: the form is missing or damaged.
    """
    return load_compact(directory).to(device)

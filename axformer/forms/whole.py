"""Load an ordinary transformers checkpoint, without the model classes of this package."""

from pathlib import Path
from typing import Any

import transformers
from transformers import AutoConfig

from axformer.errors import ArtifactError


def load(directory: Path, device: str) -> Any:
    """Load the model in its own number format and in evaluation mode.

    Raises:
        ArtifactError: the configuration names no model class of transformers.
    """
    config = AutoConfig.from_pretrained(directory, local_files_only=True)
    names = config.architectures or []
    found = next((name for name in names if hasattr(transformers, name)), None)
    if found is None:
        raise ArtifactError(f"'{directory}' names no model class of transformers ({', '.join(names) or 'none at all'})")
    model = getattr(transformers, found).from_pretrained(
        directory, config=config, dtype="auto", local_files_only=True, use_safetensors=True
    )
    return model.to(device).eval()

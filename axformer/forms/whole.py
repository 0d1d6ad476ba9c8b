"""Load a model that is nothing but a transformers checkpoint, without any of this package's own model classes."""

from pathlib import Path
from typing import Any

import transformers
from transformers import AutoConfig

from axformer.errors import ArtifactError


def load(directory: Path, device: str) -> Any:
    """The model in its own number format and in evaluation mode.

    Raises:
        ArtifactError: its configuration names no class of transformers.
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

"""Write a finished model with everything that explains it, and load it again."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axformer.architectures.registry import architecture_of
from axformer.errors import ArtifactError, InputError
from axformer.model.compact import MODEL_TYPE_PREFIX, compact_model_class, register

MODEL_DIRECTORY = "model"


def load(path: str | Path, device: str = "cpu") -> Any:
    """Load a compact model, in evaluation mode.

    Args:
        path: the ``model`` directory that a pass wrote, or the directory that holds it.
        device: where the model shall be.

    Raises:
        ArtifactError: there is no compact model, or it is damaged.
    """
    directory = Path(path)
    if (directory / MODEL_DIRECTORY).is_dir():
        directory = directory / MODEL_DIRECTORY
    if not (directory / "config.json").is_file():
        raise ArtifactError(f"'{path}' holds no compact model: there is no config.json")
    model_class = _class_of(directory)
    try:
        model = model_class.from_pretrained(directory, local_files_only=True, use_safetensors=True)
    except Exception as error:
        raise ArtifactError(f"'{path}' holds no compact model that loads: {error}") from error
    return model.to(device).eval()


def _class_of(directory: Path) -> Any:
    try:
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        model_type, names = str(config["model_type"]), config["architectures"]
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"'{directory}' holds no compact model that loads: config.json: {error}") from None
    if not model_type.startswith(MODEL_TYPE_PREFIX):
        raise ArtifactError(f"'{directory}' is a model of type '{model_type}', not one that a pass made")
    architecture = architecture_of(model_type.removeprefix(MODEL_TYPE_PREFIX))
    register(architecture.model_type)
    classes = [compact_model_class(architecture.model_type, head.model_class) for head in architecture.every_head]
    found = next((model_class for model_class in classes if model_class.__name__ in names), None)
    if found is None:
        raise ArtifactError(
            f"'{directory}' holds a {', '.join(names)}, which this version does not know; update axformer"
        )
    return found


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Yield a directory to fill; it appears at ``target`` when the block succeeds, and not at all if it fails."""
    check_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield draft
        draft.chmod(0o755)
        draft.replace(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def check_target(target: Path) -> None:
    """Check that a result can be written to a directory.

    Raises:
        InputError: the target already exists.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"output '{target}' exists and is not empty; choose another directory or remove it")


def write_texts(directory: Path, texts: Mapping[str, str]) -> None:
    """Write the text files next to the model, by name."""
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")

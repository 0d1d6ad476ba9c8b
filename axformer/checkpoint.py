"""Load a fine-tuned checkpoint and make sure that it is one the library can work on."""

import hashlib
import json
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from safetensors.torch import save
from transformers import AutoTokenizer

from axformer.architectures.base import Architecture
from axformer.architectures.registry import architecture_of
from axformer.elements import Dimensions
from axformer.errors import CheckpointError, first_line
from axformer.tasks.base import Task
from axformer.tasks.registry import task_of

HUB_PREFIX = "hf://"
HUB_FILES = (
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "special_tokens_map.json",
)
READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Checkpoint:
    """A loaded model with everything that a pass needs to know of it."""

    model: Any
    """The model, in evaluation mode, with hard attention available."""
    tokenizer: Any
    architecture: Architecture
    task: Task
    sha256: str
    """Digest of the weights."""
    bytes: int
    """Size of the weight files."""

    @property
    def dimensions(self) -> Dimensions:
        """The counts that decide which elements the model has."""
        return self.architecture.dimensions(self.model.config)


def load_checkpoint(reference: str | Path, device: str = "cpu") -> Checkpoint:
    """Load a sequence classifier and its tokenizer in float32.

    Args:
        reference: a local directory, or ``hf://organisation/name`` for a model on the hub.
        device: where PyTorch puts the model.

    Raises:
        CheckpointError: it is missing, damaged, of an unsupported family, or has no classification head.
    """
    directory = _local(str(reference))
    config = _read_config(directory)
    architecture = architecture_of(str(config.get("model_type")))
    _check_head(directory, config, architecture)
    weights = weight_files(directory)
    model = _load_model(directory, architecture)
    tokenizer = _load_tokenizer(directory)
    architecture.adopt(model)
    return Checkpoint(
        model=model.to(device).eval(),
        tokenizer=tokenizer,
        architecture=architecture,
        task=task_of(model.config),
        sha256=digest(weights),
        bytes=sum(path.stat().st_size for path in weights),
    )


def from_memory(model: Any, tokenizer: Any) -> Checkpoint:
    """A checkpoint around a copy of a model that is in memory already.

    Raises:
        CheckpointError: it is of an unsupported family, or has no classification head.
    """
    architecture = architecture_of(model.config.model_type)
    if not isinstance(model, architecture.heads[0].model_class):
        raise CheckpointError(
            f"a {type(model).__name__} has no classification head; fine-tune a {architecture.heads[0].name} first"
        )
    copy = deepcopy(model).float().eval()
    weights = save(copy.state_dict())
    architecture.adopt(copy)
    return Checkpoint(
        model=copy,
        tokenizer=tokenizer,
        architecture=architecture,
        task=task_of(copy.config),
        sha256=hashlib.sha256(weights).hexdigest(),
        bytes=len(weights),
    )


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files of a checkpoint, in order of name.

    Raises:
        CheckpointError: there is none.
    """
    files = sorted(directory.glob("*.safetensors"))
    if not files:
        pickles = sorted(path.name for path in directory.glob("*.bin"))
        remedy = "; pickled weights are not read, save the model again with save_pretrained" if pickles else ""
        raise CheckpointError(f"checkpoint '{directory}' has no .safetensors file{remedy}")
    return files


def digest(files: list[Path]) -> str:
    """SHA-256 over the content of files, one after the other, in hexadecimal."""
    total = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while part := file.read(READ_BYTES):
                total.update(part)
    return total.hexdigest()


def _local(reference: str) -> Path:
    if not reference.startswith(HUB_PREFIX):
        directory = Path(reference)
        if not directory.is_dir():
            raise CheckpointError(
                f"checkpoint '{reference}' is not a directory; give a directory, or hf://organisation/name"
            )
        return directory
    try:
        return Path(snapshot_download(reference.removeprefix(HUB_PREFIX), allow_patterns=list(HUB_FILES)))
    except Exception as error:  # noqa: BLE001 - of the hub, the network or the disk: all are about this reference
        raise CheckpointError(f"checkpoint '{reference}' cannot be fetched from the hub: {first_line(error)}") from None


def _read_config(directory: Path) -> dict[str, Any]:
    path = directory / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(
            f"checkpoint '{directory}' has no config.json; is it a saved transformers model?"
        ) from None
    except ValueError as error:
        raise CheckpointError(f"checkpoint '{directory}': config.json cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"checkpoint '{directory}': config.json holds no object")
    return config


def _check_head(directory: Path, config: dict[str, Any], architecture: Architecture) -> None:
    expected = architecture.heads[0].name
    names = config.get("architectures") or []
    if expected not in names:
        found = ", ".join(names) or "none named"
        raise CheckpointError(
            f"checkpoint '{directory}' has no classification head (architectures: {found}); "
            f"fine-tune it as {expected} first"
        )


def _load_model(directory: Path, architecture: Architecture) -> Any:
    try:
        model, info = architecture.heads[0].model_class.from_pretrained(
            directory,
            dtype=torch.float32,
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
        )
    except (SafetensorError, StrictDataclassError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise CheckpointError(
            f"checkpoint '{directory}' cannot be loaded: {first_line(error)}; copy it again"
        ) from None
    missing, foreign = sorted(info["missing_keys"]), sorted(str(key) for key in info["mismatched_keys"])
    if missing or foreign:
        raise CheckpointError(
            f"checkpoint '{directory}' does not hold all weights of {architecture.heads[0].name}: "
            f"missing or of another shape: {', '.join((missing + foreign)[:3])}"
        )
    return model


def _load_tokenizer(directory: Path) -> Any:
    try:
        return AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"checkpoint '{directory}' has no tokenizer that loads: {first_line(error)}") from None

"""Lets a checkpoint in: what it is, by its own files, and a directory that may be loaded."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedConfig

from axformer.architectures.base import Architecture
from axformer.architectures.registry import architecture_of
from axformer.errors import CheckpointError, first_line
from axformer.heads import Head
from axformer.intake.companions import notes_in
from axformer.intake.config_file import read_config, rebuild_config
from axformer.intake.limits import BUFFER_BYTES, MISSING_WEIGHTS
from axformer.intake.names import CONFIG, WEIGHTS, WEIGHTS_INDEX
from axformer.intake.tokenizer_files import take_tokenizer
from axformer.intake.weights import Weights, read_weights


@dataclass(frozen=True)
class Admitted:
    """A checkpoint whose configuration and weights hold, as far as can be told without loading."""

    directory: Path
    architecture: Architecture
    head: Head
    config: PreTrainedConfig
    notes: Mapping[str, Any]
    """What ``config.json`` holds beside it, for the results alone."""
    weights: Weights


def admit(directory: Path) -> Admitted:
    """Judge a checkpoint by its configuration and the headers of its weights. Nothing is loaded.

    Raises:
        CheckpointError: it is damaged, of an unsupported family, or of a head that is not supported.
    """
    raw = read_config(directory)
    architecture = architecture_of(str(raw.get("model_type"))[:80])
    head = _head_of(directory, raw, architecture)
    config = rebuild_config(directory, raw, architecture)
    notes = notes_in(raw, architecture)
    return Admitted(directory, architecture, head, config, notes, read_weights(directory))


@contextmanager
def loadable(admitted: Admitted) -> Iterator[Path]:
    """A directory with the checkpoint's weights, and a tokenizer and a configuration with nothing in them but what is known.

    Raises:
        CheckpointError: the configuration asks for more than the weights hold, or the tokenizer's files do not hold.
    """
    _check_size(admitted)
    with tempfile.TemporaryDirectory(prefix="axformer-intake-") as name:
        directory = Path(name)
        take_tokenizer(admitted.directory, directory)
        (directory / CONFIG).write_text(admitted.config.to_json_string(), encoding="utf-8")
        for path in admitted.weights.files:
            (directory / path.name).symlink_to(path.resolve())
        if WEIGHTS not in {path.name for path in admitted.weights.files}:
            (directory / WEIGHTS_INDEX).write_text(json.dumps(_index(admitted.weights)), encoding="utf-8")
        yield directory


def _head_of(directory: Path, raw: dict[str, Any], architecture: Architecture) -> Head:
    heads = architecture.heads
    names = raw.get("architectures") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CheckpointError(f"checkpoint '{directory}': architectures in config.json is no list of names; correct it")
    for head in heads:
        if head.name in names:
            return head
    raise CheckpointError(
        f"checkpoint '{directory}' has no supported head (architectures: {', '.join(names)[:200] or 'none named'}); "
        f"fine-tune it as one of {names_of(heads)}"
    )


def names_of(heads: Sequence[Head]) -> str:
    """Heads as messages list them."""
    return ", ".join(head.name for head in heads)


def _check_size(admitted: Admitted) -> None:
    """Build the model without memory, and make sure that its weights are all in the files: what is not would be allocated."""
    try:
        with torch.device("meta"):
            model = admitted.head.model_class(admitted.config)
    except Exception as error:  # noqa: BLE001 - a model may stumble over its configuration in any way
        raise CheckpointError(
            f"checkpoint '{admitted.directory}' cannot be loaded: config.json describes no {admitted.head.name} that can be "
            f"built: {first_line(error)}; correct it or copy it again"
        ) from None
    described = sum(weight.numel() for weight in model.parameters())
    held = sum(tensor.count for tensor in admitted.weights.tensors.values())
    if described > held + MISSING_WEIGHTS:
        raise CheckpointError(
            f"checkpoint '{admitted.directory}' does not hold all weights of {admitted.head.name}: config.json describes "
            f"{described:,}, the files hold {held:,}; copy it again"
        )
    built = sum(buffer.numel() * buffer.element_size() for buffer in model.buffers())
    if built > BUFFER_BYTES:
        raise CheckpointError(
            f"checkpoint '{admitted.directory}' cannot be loaded: config.json describes masks and tables of {built:,} bytes, "
            f"at most {BUFFER_BYTES:,} are taken; correct it"
        )


def _index(weights: Weights) -> dict[str, Any]:
    mapped = {name: path.name for path, tensors in weights.files.items() for name in tensors}
    total = sum(tensor.end - tensor.begin for tensors in weights.files.values() for tensor in tensors.values())
    return {"metadata": {"total_size": total}, "weight_map": mapped}

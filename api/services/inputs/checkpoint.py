"""What a checkpoint says of itself: its task, its size and its classes, read from its config and the names of its files."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from api.services.inputs.contents import Contents, ReferencedFile, UnreadableError
from api.services.inputs.tasks import CHOICES, EMBEDDING, LABELS, OF_HEADS, ONE_LABEL, QUESTIONS, TAGS, TASKS, SeenTask
from axformer.intake.foreign import adapter_beside
from axformer.intake.label_names import label_names
from axformer.intake.limits import CONFIG_BYTES
from axformer.intake.names import (
    ADAPTER_CONFIG,
    CONFIG,
    MODULE_FILES,
    MODULES,
    SENTENCEPIECE_MODELS,
    TOKENIZER_TABLES,
    is_checkpoint_file,
    is_shard,
)
from axformer.intake.strict_json import parse_json
from axformer.wire.heads import NewHead
from store.errors import ArchiveError, ArchiveTooLargeError
from store.storage.archives import ARCHIVE_SUFFIXES, checkpoint_members, damage_told, is_archive, unpacked_limit

LOOK_BYTES = 512 << 20
"""Most bytes of an archive that are unpacked for a look, all but its config into nothing: a second or two."""
MOST_FILES = 1000
"""Most members of an archive, or names in a directory, that are looked at; as many as a worker takes."""
_LAYERS = ("num_hidden_layers", "n_layers", "n_layer")
_SHOWN_CLASSES = 6


@dataclass(frozen=True)
class CheckpointModel:
    """A checkpoint as its config describes it."""

    task: SeenTask | None
    """None if its class is not known."""
    classes: tuple[str, ...] | None
    """The names of its classes; None where there are none."""
    family: str
    layers: int | None
    is_regression: bool = False
    """Whether its outputs are numbers, as far as its config tells."""

    @property
    def is_multi_label(self) -> bool:
        """Whether it gives each text any number of labels."""
        return self.task is LABELS

    @property
    def has_one_output(self) -> bool:
        """Whether it has a single output, which is a number, or yes and no."""
        return self.classes is not None and len(self.classes) == 1

    @property
    def is_share_right(self) -> bool:
        """Whether its first metric is a share of right answers, as far as its config tells."""
        is_number = self.is_regression or self.has_one_output
        return self.task in (CHOICES, QUESTIONS, LABELS) or (self.task is ONE_LABEL and not is_number)

    @property
    def words(self) -> str:
        """The model in one line."""
        parts = [f"{self.family} for {self.task.name}" if self.task else self.family]
        if self.layers is not None:
            parts.append(f"{self.layers} layers")
        if self.classes is not None and self.task in (ONE_LABEL, LABELS, TAGS):
            names = ", ".join(self.classes[:_SHOWN_CLASSES])
            rest = f" and {len(self.classes) - _SHOWN_CLASSES} more" if len(self.classes) > _SHOWN_CLASSES else ""
            parts.append(f"{len(self.classes)} {'class' if len(self.classes) == 1 else 'classes'} ({names}{rest})")
        return ", ".join(parts)


def look_at_checkpoint(contents: Contents, uri: str, head: NewHead | None = None) -> CheckpointModel:
    """Read the config of a checkpoint, and check that what else it needs is there.

    Args:
        head: the new head that it gets as a base model; None if it has its own.

    Raises:
        UnreadableError: it is no checkpoint that a worker would take.
    """
    directory = contents.directory(uri)
    if directory is not None:
        held = _in_directory(contents, directory)
    else:
        with contents.open(uri, is_checkpoint=True) as content:
            held = _in_archive(content)
    if held.is_whole:
        _check_names(held.names)
    return _described(held.config, head, is_embedder=MODULES in held.names)


@dataclass
class _Held:
    """What was seen of a checkpoint's files."""

    names: set[str]
    config: bytes = b""
    is_whole: bool = True
    """Whether all names were seen."""


def _in_directory(contents: Contents, directory: Path) -> _Held:
    try:
        held = _Held({entry.name for entry in islice(directory.iterdir(), MOST_FILES) if entry.is_file()})
        held.names |= {name for name in MODULE_FILES if (directory / name).is_file()}
    except OSError as error:
        raise UnreadableError(f"'{directory}' cannot be listed ({error.strerror}); change its mode") from None
    if CONFIG in held.names:
        with contents.open_file(directory / CONFIG) as content:
            held.config = content.file.read(CONFIG_BYTES + 1)
    return held


def _in_archive(content: ReferencedFile) -> _Held:
    name, held = content.name, _Held(set())
    if not is_archive(name):
        raise UnreadableError(
            f"'{name}' is not an archive; pack the checkpoint as one of {', '.join(ARCHIVE_SUFFIXES)}"
        )
    most = unpacked_limit(content.size, LOOK_BYTES)
    try:
        with damage_told(name):
            for own, file in checkpoint_members(
                content.file, content.size, name, max_bytes=most, max_members=MOST_FILES
            ):
                held.names.add(own)
                if own == CONFIG:
                    held.config = file.read(CONFIG_BYTES + 1)
    except ArchiveTooLargeError:
        if CONFIG not in held.names:
            raise UnreadableError(
                f"'{name}' is too long to be looked at here; pack {CONFIG} before the weights"
            ) from None
        held.is_whole = False
    except ArchiveError as error:
        raise UnreadableError(str(error)) from None
    return held


def _check_names(names: set[str]) -> None:
    if CONFIG not in names:
        adapter = "; it looks like an adapter: merge it into its model" if ADAPTER_CONFIG in names else ""
        raise UnreadableError(
            f"it holds no {CONFIG}{adapter or ', so it is no checkpoint; pack what save_pretrained wrote'}"
        )
    if not any(is_shard(name) and is_checkpoint_file(name) for name in names):
        raise UnreadableError("it holds no .safetensors weights; save it with transformers' save_pretrained")
    beside = adapter_beside(names)
    if beside is not None:
        raise UnreadableError(beside)
    if not names & {*TOKENIZER_TABLES, *SENTENCEPIECE_MODELS}:
        raise UnreadableError("it holds no tokenizer; save the tokenizer beside the model")


def _described(content: bytes, head: NewHead | None, *, is_embedder: bool) -> CheckpointModel:
    try:
        raw = _object(content)
        names = label_names(raw)
    except ValueError as error:
        raise UnreadableError(f"{CONFIG} cannot be read: {error}") from None
    architectures = raw.get("architectures")
    named = str(architectures[0]) if isinstance(architectures, list) and architectures else None
    layers = next((raw[key] for key in _LAYERS if isinstance(raw.get(key), int)), None)
    if head is not None:
        classes = head.labels or (("a number",) if head.task == "regression" else None)
        return CheckpointModel(OF_HEADS.get(head.task, ONE_LABEL), classes, named or "a base model", layers)
    if is_embedder:
        return CheckpointModel(EMBEDDING, None, (named or "an encoder").removesuffix("Model"), layers)
    if named is None:
        raise UnreadableError(f"{CONFIG} names no architectures, so the task is unknown; save the checkpoint again")
    task, problem = next((task for task in TASKS if named.endswith(task.end)), None), raw.get("problem_type")
    family = named if task is None else named.removesuffix(task.end)
    if task is ONE_LABEL and problem == "multi_label_classification":
        task = LABELS
    return CheckpointModel(task, names, family, layers, problem == "regression")


def _object(content: bytes) -> Mapping[str, Any]:
    if len(content) > CONFIG_BYTES:
        raise ValueError(f"it has more than {CONFIG_BYTES} bytes")
    value = parse_json(content)
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value

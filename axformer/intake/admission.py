"""Admit a checkpoint: determine what it is from its files, write a directory that is safe to load, and check what transformers
reports about the loaded weights: all of the model's were found, and no others matter."""

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, PreTrainedConfig

from axformer.architectures.base import Architecture
from axformer.architectures.embedder import SPEC
from axformer.architectures.heads import Head
from axformer.architectures.registry import architecture_of
from axformer.errors import CheckpointError, first_line
from axformer.intake.companions import notes_in
from axformer.intake.config_file import read_config, rebuild_config
from axformer.intake.foreign import adapter_beside, check_files, remedy_in
from axformer.intake.limits import BUFFER_BYTES, MISSING_WEIGHTS
from axformer.intake.names import CONFIG
from axformer.intake.new_head import head_for, is_new, with_head
from axformer.intake.sentences import check_sizes, cross_encoder_in, embedding_in
from axformer.intake.tokenizer_files import take_tokenizer
from axformer.intake.weight_names import place_of, prefix_of, unread, unwrapped
from axformer.intake.weights import FLOATS, Weights, check_whole, place_weights, read_weights, some
from axformer.model.compact import MODEL_TYPE_PREFIX
from axformer.wire.heads import NewHead

_LANGUAGE_MODELS = (AutoModelForCausalLM, AutoModelForMaskedLM)


@dataclass(frozen=True)
class Admitted:
    """A checkpoint with a valid config and valid weights, as far as can be checked without loading."""

    directory: Path
    architecture: Architecture
    head: Head
    config: PreTrainedConfig
    notes: Mapping[str, Any]
    """Other keys of ``config.json``, which are only copied into results."""
    weights: Weights
    tokenizer_class: Any
    """The unchecked tokenizer class from ``config.json``; None if it has none."""
    new_head: NewHead | None = None
    """The head that a base model gets; None if the checkpoint has its own."""


def admit(
    directory: Path, new_head: NewHead | None = None, *, or_bare: bool = False, pooling: str | None = None
) -> Admitted:
    """Check a checkpoint's config and the headers of its weights, without loading anything.

    Args:
        new_head: the head that a base model gets; None for a checkpoint with its own.
        or_bare: whether a model without a head may be admitted too.
        pooling: how a plain encoder becomes an embedder; None for any other checkpoint.

    Raises:
        CheckpointError: it is damaged, of an unsupported family, or of a head that is not supported.
    """
    found = None if or_bare or new_head is not None else embedding_in(directory, pooling)
    directory, embedding, behind = (directory, None, {}) if found is None else found
    check_files(directory)
    raw = read_config(directory) | cross_encoder_in(directory)
    architecture = architecture_of(_model_type(directory, raw))
    weights = replace(read_weights(directory), behind=behind)
    check_whole(directory, weights.tensors)
    adapter = adapter_beside([path.name for path in directory.iterdir()])
    if adapter is not None:
        raise CheckpointError(f"checkpoint '{directory}' cannot be loaded: {adapter}")
    if embedding is not None:
        head = architecture.embedder
    elif new_head is None:
        head = _head_of(directory, raw, architecture, or_bare=or_bare)
    else:
        head = head_for(directory, _names_in(directory, raw), architecture, new_head)
        raw = with_head(raw, head, new_head)
    config = rebuild_config(directory, raw, architecture)
    if embedding is not None:
        check_sizes(directory, embedding, config.hidden_size)
        setattr(config, SPEC, embedding.model_dump())
    notes = notes_in(raw, architecture)
    return Admitted(directory, architecture, head, config, notes, weights, raw.get("tokenizer_class"), new_head)


@contextmanager
def loadable(admitted: Admitted) -> Iterator[Path]:
    """Yield a directory with the checkpoint's weights, and with a tokenizer and a config that contain only known keys.

    Raises:
        CheckpointError: the config describes more than the weights contain, the weights are not those of a whole model, or
            the tokenizer's files are not valid.
    """
    model = _described(admitted)
    _check_size(admitted, model)
    names = _names(admitted, model)
    with tempfile.TemporaryDirectory(prefix="axformer-intake-") as name:
        directory = Path(name)
        take_tokenizer(admitted.directory, admitted.architecture.model_type, admitted.tokenizer_class, directory)
        (directory / CONFIG).write_text(admitted.config.to_json_string(), encoding="utf-8")
        place_weights(admitted.weights, directory, names)
        yield directory


def _model_type(directory: Path, raw: Mapping[str, Any]) -> str:
    """The family in a ``config.json``."""
    name = raw.get("model_type")
    if not isinstance(name, str):
        raise CheckpointError(f"checkpoint '{directory}': config.json names no model_type; {remedy_in(directory)}")
    if name.startswith(MODEL_TYPE_PREFIX):
        raise CheckpointError(
            f"checkpoint '{directory}' is a part of a result; give that, {directory.parent}, where one is taken, and elsewhere "
            "the checkpoint that the run began with"
        )
    return name[:80]


def _names_in(directory: Path, raw: dict[str, Any]) -> list[str]:
    """The names of model classes in a ``config.json``."""
    names = raw.get("architectures") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CheckpointError(
            f"checkpoint '{directory}': architectures in config.json is not a list of names; correct it"
        )
    return names


def _head_of(directory: Path, raw: dict[str, Any], architecture: Architecture, *, or_bare: bool) -> Head:
    heads, names = architecture.heads, _names_in(directory, raw)
    for head in (*heads, *([architecture.without_head] if or_bare else [])):
        if head.name in names:
            return head
    raise CheckpointError(
        f"checkpoint '{directory}' has no supported head (architectures: {', '.join(names)[:200] or 'none named'}); "
        f"fine-tune it as one of {names_of(heads)}, or give it a head and training data, for example "
        "head=classification=no,yes, or where it embeds texts save it by sentence-transformers with its pooling, or set for "
        "example pooling=mean where settings are taken"
    )


def names_of(heads: Sequence[Head]) -> str:
    """Heads as messages list them."""
    return ", ".join(head.name for head in heads)


def _described(admitted: Admitted) -> Any:
    """The model that the config describes, without allocating its weights."""
    try:
        with torch.device("meta"):
            return admitted.head.model_class(admitted.config)
    except Exception as error:  # noqa: BLE001 - a model may stumble over its configuration in any way
        raise CheckpointError(
            f"checkpoint '{admitted.directory}' cannot be loaded: config.json describes no {admitted.head.name} that can be "
            f"built: {first_line(error)}; correct it or copy it again"
        ) from None


def _check_size(admitted: Admitted, model: Any) -> None:
    """Check that the files contain all described weights, since missing ones would be allocated."""
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


def _names(admitted: Admitted, model: Any) -> dict[str, str]:
    """The name to load each weight by: its own without prefixes of wrappers."""
    tensors, base = admitted.weights.tensors, model.base_model_prefix
    try:
        names = unwrapped(tensors, model.state_dict(), base)
    except ValueError as error:
        raise CheckpointError(
            f"checkpoint '{admitted.directory}' cannot be loaded: {error}; save it again with one of them"
        ) from None
    parameters = {name for name, _ in model.named_parameters()}
    integers = [
        name for name in tensors if tensors[name].dtype not in FLOATS and place_of(names[name], base, parameters)
    ]
    if integers:
        raise CheckpointError(
            f"checkpoint '{admitted.directory}' is quantized (weights of type {tensors[integers[0]].dtype}: {some(integers)}); "
            "give the model with its whole weights"
        )
    return names


def check_loaded(admitted: Admitted, info: Mapping[str, Any], base: str) -> None:
    """Compare the weights that a model needs with those in the files.

    Args:
        info: the ``output_loading_info`` of ``from_pretrained``.
        base: the prefix of the model without its head.

    Raises:
        CheckpointError: some are missing, have another shape, or are not used; the message names them.
    """
    missing, foreign = sorted(info["missing_keys"]), sorted(info["mismatched_keys"])
    if admitted.new_head is not None:
        if not missing:
            raise CheckpointError(
                f"checkpoint '{admitted.directory}' holds all weights of {admitted.head.name}, so it has such a head already; "
                "leave the new head out"
            )
        missing = [name for name in missing if not is_new(name, base)]
    said = f"checkpoint '{admitted.directory}' does not hold all weights of {admitted.head.name}"
    if missing:
        raise CheckpointError(f"{said}: missing: {some(missing)}; {_remedy(missing, admitted.weights.tensors)}")
    if foreign:
        shapes = [f"{name} ({_shown(there)} instead of {_shown(wanted)})" for name, there, wanted in foreign]
        raise CheckpointError(
            f"{said}: of another shape: {some(shapes)}; correct config.json, which describes another model than the files hold"
        )
    idle = unread(info["unexpected_keys"], is_language_model=admitted.head.auto_class in _LANGUAGE_MODELS)
    if idle:
        raise CheckpointError(
            f"checkpoint '{admitted.directory}' holds weights that a {admitted.head.name} does not read: {some(idle)}; correct "
            "config.json if it describes another model than was trained, or load the model with its own class and save it again"
        )


def _remedy(missing: Collection[str], names: Collection[str]) -> str:
    prefix = next((found for name in missing if (found := prefix_of(name, names))), None)
    if prefix is None:
        return "correct config.json if it describes another model than was trained, else save the model again"
    return (
        f"they are there with '{prefix}' before their names; take it off: save_file({{name.removeprefix('{prefix}'): weight "
        "for name, weight in load_file(FILE).items()}, FILE, {'format': 'pt'}), both of safetensors.torch"
    )


def _shown(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape)) or "one number"

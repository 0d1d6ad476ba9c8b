"""Files that are copied from a checkpoint into its results: the tokenizer, a chat template, generation settings, and notes in
``config.json``.

All of them are limited in size and copied unchanged. Chat template, generation settings and notes are only data to this
package; no library sees them while a checkpoint is loaded.
"""

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import GenerationConfig, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from axformer.architectures.base import Architecture
from axformer.intake.config_file import known_keys
from axformer.intake.limits import COMPANION_BYTES, NOTES_BYTES
from axformer.intake.names import (
    CHAT_TEMPLATE,
    GENERATION_CONFIG,
    TOKENIZER,
    TOKENIZER_CONFIG,
    TOKENIZER_OBJECTS,
    TOKENIZER_TABLES,
)
from axformer.intake.strict_json import parse_json
from axformer.intake.tokenizer_files import known_arguments, settings_of

_NOTE = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
"""The pattern of a note's name."""
_OBEYED = frozenset(
    {
        # code, files and other packages
        "auto_map", "configuration_files", "custom_generate", "custom_pipelines", "gguf_file", "subfolder",
        "transformers_weights", "trust_remote_code", "use_kernels",
        # classes of others
        "adapter_config", "feature_extractor_type", "image_processor_type", "model_name", "processor_class",
        "video_processor_type",
        # storage, sharding and dtype of weights
        "attn_implementation", "codec_config", "compression_config", "device_map", "distributed_config",
        "experts_implementation", "fusion_config", "gradient_checkpointing", "per_layer_config", "pruned_heads",
        "quantization_config",
        # parts of a model of several
        "decoder", "encoder", "generator", "text_config", "text_encoder",
        # shapes and masks that every model may have
        "attention_chunk_size", "embed_dim", "head_dim", "is_causal", "is_decoder", "layer_types", "mlp_layer_types",
        "num_heads", "partial_rotary_factor", "rope_parameters", "rope_scaling", "rope_theta", "sliding_window",
        "tie_last_hidden_states", "use_bidirectional_attention",
    }
)  # fmt: skip
"""Keys that transformers follows in the config of any family, besides the attributes of its class."""
_OURS = "axformer"
_FROM_MODEL = "_from_model_config"
"""A private key in most ``generation_config.json`` files, which says that nothing was set explicitly."""


@dataclass(frozen=True)
class Companions:
    """The files written next to a result's weights."""

    files: Mapping[str, bytes]
    """Contents by name: tokenizer, chat template, generation settings."""
    notes: Mapping[str, Any]
    """Keys of ``config.json`` that its family does not use."""


def notes_in(raw: Mapping[str, Any], architecture: Architecture) -> dict[str, Any]:
    """The keys of a ``config.json`` without effect, with their values, as many as fit into ``NOTES_BYTES``."""
    config_class = CONFIG_MAPPING[architecture.model_type]
    known = known_keys(config_class, architecture)
    notes, left = {}, NOTES_BYTES
    for key, value in raw.items():
        if key in known or not _is_note(key, config_class):
            continue
        size = len(json.dumps({key: value}))
        if size <= left:
            notes[key], left = value, left - size
    return notes


def companion_files(directory: Path) -> dict[str, bytes]:
    """A checkpoint's chat template and generation settings. Files that are too large or damaged are left out."""
    files = {name: _read(directory / name) for name in (CHAT_TEMPLATE, GENERATION_CONFIG)}
    files[GENERATION_CONFIG] = _harmless(files[GENERATION_CONFIG])
    return {name: content for name, content in files.items() if content is not None}


def tokenizer_files(tokenizer: Any, directory: Path | None = None) -> dict[str, bytes]:
    """The files of a tokenizer: those that it was loaded from if ``tokenizer.json`` is one, else as transformers writes them.

    Args:
        tokenizer: the tokenizer as it was loaded, before any call, since a call changes what it would write.
        directory: the directory that it was loaded from; None if it was in memory.

    Returns:
        Contents by name. They make the same tokenizer next to any model, in transformers 4 and 5, and name no path and no
        argument of the call that loaded it.
    """
    if directory is not None and (directory / TOKENIZER).is_file():
        names = [name for name in (*TOKENIZER_OBJECTS, *TOKENIZER_TABLES) if (directory / name).is_file()]
        files = {name: (directory / name).read_bytes() for name in names}
        settings = json.loads(files[TOKENIZER_CONFIG]) | {"padding_side": tokenizer.padding_side}
    else:
        files = _written(tokenizer)
        settings = known_arguments(json.loads(files.get(TOKENIZER_CONFIG, b"{}")))
    if TOKENIZER in files:
        settings = settings_of(tokenizer, tokenizer.special_tokens_map, settings, json.loads(files[TOKENIZER]))
    return files | {TOKENIZER_CONFIG: (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode()}


def _written(tokenizer: Any) -> dict[str, bytes]:
    """The files that transformers writes for a tokenizer."""
    one_template = isinstance(tokenizer.chat_template, str)  # several would need their own directory
    with tempfile.TemporaryDirectory(prefix="axformer-tokenizer-") as scratch:
        tokenizer.save_pretrained(scratch, save_jinja_files=one_template)
        return {path.name: path.read_bytes() for path in sorted(Path(scratch).iterdir()) if path.is_file()}


def _is_note(key: str, config_class: type[PreTrainedConfig]) -> bool:
    is_named_as_one = _NOTE.fullmatch(key) is not None and not key.startswith(_OURS)
    return is_named_as_one and key not in _OBEYED and not hasattr(config_class, key)


def _read(path: Path) -> bytes | None:
    """The content of a small file; None if it does not exist."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        content = file.read(COMPANION_BYTES + 1)
    try:
        content.decode("utf-8")
    except UnicodeError:
        return None
    return content if len(content) <= COMPANION_BYTES else None


def _harmless(content: bytes | None) -> bytes | None:
    """Generation settings without private keys, keys that loaders follow, and method names; None if they are not an object."""
    try:
        settings = None if content is None else parse_json(content)
    except ValueError:
        return None
    if not isinstance(settings, dict):
        return None
    kept = {key: value for key, value in settings.items() if _is_setting(key)}
    return content if kept == settings else (json.dumps(kept, indent=2) + "\n").encode()


def _is_setting(key: str) -> bool:
    is_obeyed = key in _OBEYED or callable(getattr(GenerationConfig, key, None))
    return key == _FROM_MODEL or (_NOTE.fullmatch(key) is not None and not is_obeyed)

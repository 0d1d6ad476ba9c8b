"""Rebuild a model's config from the known keys of its family.

A config class follows whatever a file contains: the code that runs attention, other files with weights, parts of other
projects to load first. Therefore only keys that describe the model are kept, with values in sane bounds, and the family's own
class is built from them. Other keys are left out; harmless ones are copied into results
(:mod:`axformer.intake.companions`).
"""

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from axformer.architectures.base import Architecture
from axformer.errors import CheckpointError, first_line
from axformer.intake import limits
from axformer.intake.foreign import remedy_in
from axformer.intake.label_names import COUNT, ID2LABEL, LABEL2ID, label_maps, label_names
from axformer.intake.names import CONFIG
from axformer.intake.strict_json import read_json
from axformer.intake.tokenizer_files import TOKENIZER_CLASSES
from axformer.tasks.one_output import CROSS_ENCODER_KEYS

_COMMON = frozenset(
    {"architectures", ID2LABEL, LABEL2ID, COUNT, "problem_type", "transformers_version", "tokenizer_class"}
)
"""Keys of every family's config that describe the model."""
_ROTARY = frozenset({"rope_theta", "rope_scaling", "partial_rotary_factor"})
"""Keys that older files have instead of ``rope_parameters``."""
_WITHOUT_EFFECT = frozenset({"sinusoidal_pos_embds"})
"""Keys that only affect slow initial values, which the file's weights overwrite."""
_QUANTIZED = ("quantization_config", "compression_config")
_PRUNED_HEADS = "pruned_heads"
_LABELS = (ID2LABEL, LABEL2ID)


def read_config(directory: Path) -> dict[str, Any]:
    """The unchecked content of ``config.json``.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    try:
        config = read_json(directory / CONFIG, limits.CONFIG_BYTES)
    except FileNotFoundError:
        raise CheckpointError(f"checkpoint '{directory}' has no config.json; {remedy_in(directory)}") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint '{directory}': config.json cannot be read: {error}; copy it again") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"checkpoint '{directory}': config.json holds no object")
    return config


def rebuild_config(directory: Path, raw: Mapping[str, Any], architecture: Architecture) -> PreTrainedConfig:
    """Build the config of a model of a family from known keys only.

    Raises:
        CheckpointError: the model is quantized or lacks heads, or a value is out of bounds or contradicts others.
    """
    quantized = next((key for key in _QUANTIZED if raw.get(key) is not None), None)
    if quantized is not None:
        raise CheckpointError(
            f"checkpoint '{directory}' is quantized (config.json has {quantized}); give the model with its whole weights"
        )
    pruned = raw.get(_PRUNED_HEADS)
    if pruned:
        raise CheckpointError(
            f"checkpoint '{directory}' has heads removed by prune_heads (config.json has {_PRUNED_HEADS}: {str(pruned)[:80]}), "
            "which transformers does not load any more; give the model as it was before, its heads are judged anew"
        )
    config_class = CONFIG_MAPPING[architecture.model_type]
    known = known_keys(config_class, architecture)
    kept = {key: value for key, value in raw.items() if key in known}
    if str(kept.get("tokenizer_class")) not in TOKENIZER_CLASSES:
        kept.pop("tokenizer_class", None)  # the tokenizer's own files count
    try:
        for key, value in kept.items():
            _check(key, value, limits.LABELS if key in _LABELS else limits.LIST_LENGTH)
        config: PreTrainedConfig = config_class(**_with_agreed_labels(kept))
        dimensions = architecture.dimensions(config)
        _check_dimensions({name: getattr(dimensions, name) for name in ("layers", "heads", "hidden_size")})
    except Exception as error:  # noqa: BLE001 - a class may stumble over a value in any way, and all are about this file
        raise CheckpointError(
            f"checkpoint '{directory}' cannot be loaded: config.json: {first_line(error)}; correct it or copy it again"
        ) from None
    return config


def _with_agreed_labels(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The keys with two class maps that agree, or with none if the classes are unnamed."""
    names = label_names(kept)
    others = {key: value for key, value in kept.items() if key not in (*_LABELS, COUNT)}
    return others if names is None else others | label_maps(names)


def known_keys(config_class: type[PreTrainedConfig], architecture: Architecture) -> frozenset[str]:
    """The keys that describe a model of a family."""
    own = {field.name for field in fields(config_class)} - {field.name for field in fields(PreTrainedConfig)}
    rotary = _ROTARY if "rope_parameters" in own else frozenset()
    aliases = config_class.attribute_map
    known = own | _COMMON | set(CROSS_ENCODER_KEYS) | rotary | set(aliases) | set(architecture.config_keys)
    return frozenset(known - _WITHOUT_EFFECT)


def _check(key: str, value: Any, longest: int) -> None:
    """Check that a value is small, whatever it means."""
    match value:
        case None | bool():
            return
        case int() if abs(value) > (most := limits.DIMENSIONS.get(key, limits.INTEGER)):
            raise ValueError(f"{key}={value} is more than the {most} that is taken")
        case float() if not math.isfinite(value) or abs(value) > limits.MAGNITUDE:
            raise ValueError(f"{key}={value} is more than the {limits.MAGNITUDE:g} that is taken")
        case str() if len(value) > limits.NAME_LENGTH or any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError(f"{key} holds a text that is longer than {limits.NAME_LENGTH} characters, or no text")
        case list() | dict() if len(value) > longest:
            raise ValueError(f"{key} has {len(value)} entries, at most {longest} are taken")
        case list():
            for part in value:
                _check(key, part, limits.LIST_LENGTH)
        case dict():
            for name, part in value.items():
                _check(key, name, limits.LIST_LENGTH)
                _check(key, part, limits.LIST_LENGTH)


def _check_dimensions(counts: Mapping[str, Any]) -> None:
    wrong = next((name for name, count in counts.items() if not isinstance(count, int) or count < 1), None)
    if wrong is not None:
        raise ValueError(f"the model has {wrong}={counts[wrong]!r}; a model has at least 1")

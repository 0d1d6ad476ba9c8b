"""Read what sentence-transformers writes beside a transformer: how token vectors become the vector of a text.

A directory with ``modules.json`` is a chain of modules, each named by a class. Those that this package can compute and write
again are kept; any other changes the vectors, so the directory is refused.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from axformer.architectures.embedder import BEHIND, Dense, Embedding
from axformer.errors import CheckpointError, reason_of
from axformer.intake.foreign import check_files
from axformer.intake.headers import Tensor, read_header
from axformer.intake.limits import CONFIG_BYTES
from axformer.intake.names import CONFIG, MODULES, SENTENCE_CONFIG, SENTENCE_LIMITS, WEIGHTS
from axformer.intake.strict_json import read_json
from axformer.tasks.one_output import CROSS_ENCODER_KEYS

_PATH = re.compile(r"[A-Za-z0-9_][\w.-]{0,63}", re.ASCII)
MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The keys of a pooling module, in the order in which several are joined."""
_TRANSFORMER, _POOLING, _DENSE, _NORMALIZE = "Transformer", "Pooling", "Dense", "Normalize"
_ASYMMETRIC = (
    "an asymmetric model has an encoder for queries and one for documents; give each as a checkpoint of its own"
)
_SPARSE = "a sparse encoder gives a weight for each word of its vocabulary, and no vector of a text"
_WHY_NOT = {
    "Asym": _ASYMMETRIC,
    "Router": _ASYMMETRIC,
    "SpladePooling": _SPARSE,
    "MLMTransformer": _SPARSE,
    "SparseAutoEncoder": _SPARSE,
    "StaticEmbedding": "it has no transformer, so there is nothing to make smaller",
}


Behind = dict[Path, dict[str, Tensor]]
"""As :attr:`axformer.intake.weights.Weights.behind`."""


def embedding_in(directory: Path, pooling: str | None) -> tuple[Path, Embedding, Behind] | None:
    """Where the transformer of an embedder lies, how it embeds, and by which weights; None for any other checkpoint.

    Args:
        pooling: what a plain encoder is to be pooled by; None if nothing was said.

    Raises:
        CheckpointError: its modules are damaged, or cannot be kept.
    """
    if not (directory / MODULES).is_file():
        return None if pooling is None else (directory, Embedding.model_validate({"pooling": (pooling,)}), {})
    modules = _modules(directory)
    kinds = [kind for kind, _ in modules]
    if kinds == [_TRANSFORMER] and pooling is None:
        return None
    if pooling is not None:
        raise _refused(directory, f"it says how it is pooled; leave pooling={pooling} out")
    is_normal = kinds[-1:] == [_NORMALIZE]
    layers = [path for _, path in modules[2 : len(modules) - is_normal]]
    if kinds != [_TRANSFORMER, _POOLING, *[_DENSE] * len(layers), *[_NORMALIZE] * is_normal]:
        raise _refused(
            directory,
            f"its modules are {', '.join(kinds) or 'none'}; taken are Transformer, Pooling, Dense and Normalize in this order",
        )
    limits = _object(directory, modules[0][1], SENTENCE_LIMITS)
    if limits.get("do_lower_case"):
        raise _refused(
            directory,
            f"{SENTENCE_LIMITS} says do_lower_case, which no other runtime does; lower the texts yourself",
        )
    pooled = _object(directory, modules[1][1], "config.json")
    settings = _object(directory, "", SENTENCE_CONFIG)
    dense = [_dense(directory, path) for path in layers]
    behind = {
        directory / path / WEIGHTS: _behind(directory, path, place, dense[place]) for place, path in enumerate(layers)
    }
    embedding = _embedding(directory, pooled, limits, settings, dense=dense, normalize=is_normal)
    return directory / modules[0][1], embedding, behind


def cross_encoder_in(directory: Path) -> dict[str, Any]:
    """What sentence-transformers, since version 5.4, says beside ``config.json`` of a cross-encoder, as the key that older
    versions write into it and all read; empty for any other checkpoint.

    Raises:
        CheckpointError: it has prompts, for which there is no place in ``config.json``.
    """
    settings = _object(directory, "", SENTENCE_CONFIG)
    if settings.get("model_type") != "CrossEncoder":
        return {}
    prompt = next(filter(None, _prompts(directory, settings).values()), None)
    if prompt is not None:
        raise _refused(
            directory,
            f"a cross-encoder's prompts, as {prompt[:40]!r}, are read by no other runtime; put them into the "
            f"texts, and take prompts out of {SENTENCE_CONFIG}",
        )
    activation = settings.get("activation_fn")
    return {} if activation is None else {CROSS_ENCODER_KEYS[0]: {"activation_fn": activation}}


def check_sizes(directory: Path, embedding: Embedding, hidden: int) -> None:
    """Check that each layer behind the pooling takes what the one before it gives.

    Raises:
        CheckpointError: one does not.
    """
    size = hidden * len(embedding.pooling)
    for layer in embedding.dense:
        if layer.in_features != size:
            raise _refused(
                directory, f"a Dense takes {layer.in_features} numbers and gets {size}; copy its configurations again"
            )
        size = layer.out_features


def _modules(directory: Path) -> list[tuple[str, str]]:
    """The kind and the directory of each module."""
    try:
        listed = read_json(directory / MODULES, CONFIG_BYTES)
        modules = [(str(one["type"]), str(one["path"])) for one in listed]
    except (OSError, ValueError, KeyError, TypeError):
        raise _refused(directory, f"{MODULES} cannot be read; copy it again") from None
    for kind, path in modules:
        name = kind.rpartition(".")[2]
        if name in _WHY_NOT:
            raise _refused(directory, f"{MODULES} names {name}: {_WHY_NOT[name]}")
        if not kind.startswith("sentence_transformers."):
            raise _refused(directory, f"{MODULES} names the class {kind[:100]!r}, code of its own, which is never run")
        if path and not _PATH.fullmatch(path):
            raise _refused(directory, f"{MODULES} names the path {path[:100]!r}, which is no directory in it")
    paths = [path for _, path in modules]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise _refused(directory, f"{MODULES} names the path {twice!r} twice")
    return [(kind.rpartition(".")[2], path) for kind, path in modules]


def _object(directory: Path, path: str, name: str) -> Mapping[str, Any]:
    """A small file of a module; empty if it is not there."""
    try:
        found = read_json(directory / path / name, CONFIG_BYTES)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _refused(directory, f"{Path(path, name)} cannot be read: {error}; copy it again") from None
    if not isinstance(found, dict):
        raise _refused(directory, f"{Path(path, name)} holds no object; copy it again")
    return found


def _prompts(directory: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    """The prompts of a model, of which some may be empty."""
    given = settings.get("prompts") or {}
    if not isinstance(given, dict) or not all(isinstance(text, str | None) for text in given.values()):
        raise _refused(directory, f"prompts in {SENTENCE_CONFIG} are no object of texts; copy it again")
    return {name: text for name, text in given.items() if text is not None}


def _embedding(
    directory: Path,
    pooled: Mapping[str, Any],
    limits: Mapping[str, Any],
    settings: Mapping[str, Any],
    **kept: Any,
) -> Embedding:
    modes = pooled.get("pooling_mode") or [mode for key, mode in MODES.items() if pooled.get(key)]
    if not modes:
        raise _refused(directory, "its pooling says no way to pool; copy its directory 1_Pooling too")
    prompts = _prompts(directory, settings)
    if pooled.get("include_prompt") is False and any(prompts.values()):
        raise _refused(
            directory, "its pooling leaves the prompt out (include_prompt=false), which no graph and no server does"
        )
    default = settings.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise _refused(
            directory,
            f"its default prompt '{default}' is not among its prompts",
        )
    try:
        return Embedding.model_validate(
            {
                "pooling": (modes,) if isinstance(modes, str) else modes,
                **kept,
                "dimensions": settings.get("truncate_dim"),
                "max_length": limits.get("max_seq_length"),
                "prompts": prompts,
                "default_prompt": default,
                "similarity": settings.get("similarity_fn_name"),
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise _refused(directory, f"{first['loc'][0]}: {reason_of(first)}") from None


def _dense(directory: Path, path: str) -> Dense:
    """The configuration of a layer behind the pooling."""
    if not (directory / path / WEIGHTS).is_file():
        raise _refused(
            directory,
            f"{path} holds no {WEIGHTS}; copy it too, or if its weights are pickled (pytorch_model.bin), which is never read, "
            "load the model in sentence-transformers and save it again, as safetensors",
        )
    check_files(directory / path)
    try:
        return Dense.model_validate(_object(directory, path, CONFIG))
    except ValidationError as error:
        first = error.errors()[0]
        found = "" if first["type"] == "missing" else f" (it is {str(first['input'])[:100]!r})"
        raise _refused(
            directory, f"{path}/{CONFIG}: {str(first['loc'][0])[:100]!r}: {reason_of(first)}{found}"
        ) from None


def _behind(directory: Path, path: str, place: int, layer: Dense) -> dict[str, Tensor]:
    """The weights of a layer behind the pooling, by the names that they have in the model."""
    try:
        tensors = read_header(directory / path / WEIGHTS)
    except (OSError, ValueError) as error:
        raise _refused(directory, f"{path}/{WEIGHTS}: {error}; copy it again") from None
    if {name: tensor.shape for name, tensor in tensors.items()} != layer.shapes():
        raise _refused(directory, f"{path}/{WEIGHTS} holds other weights than {path}/{CONFIG} says; copy both again")
    return {f"{BEHIND}.{place}.{name}": tensor for name, tensor in tensors.items()}


def _refused(directory: Path, why: str) -> CheckpointError:
    return CheckpointError(f"sentence-transformers directory '{directory}' is not taken: {why}")

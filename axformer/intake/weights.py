"""The weight files of a checkpoint: whether their content matches their headers, and whether they are those of a whole model.

Adapters, shards and quantized numbers would otherwise be reported as missing weights, with advice that does not help.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from axformer.architectures.embedder import DENSE, DENSE_WEIGHTS
from axformer.errors import CheckpointError
from axformer.intake.foreign import MERGE, misnamed_weights, remedy_in
from axformer.intake.headers import Tensor, copy_renamed, read_header
from axformer.intake.limits import INDEX_BYTES, TENSORS
from axformer.intake.names import WEIGHTS, WEIGHTS_INDEX, is_shard
from axformer.intake.strict_json import read_json
from axformer.model.number_format import most_common

_FORMATS = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
_WHOLE_NUMBERS = frozenset({"BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"})
_SHOWN = 3
"""Names that a message shows."""
_ADAPTER = re.compile(
    r"(^|\.)(lora_\w+|base_layer|modules_to_save|original_module|ia3_l|hada_\w+|lokr_\w+|oft_\w+|boft_\w+|vera_lambda_\w+|"
    r"adapters|prompt_encoder|prefix_encoder|prompt_tuning)\.|\.(lora_embedding_[AB]|lora_magnitude_vector|ia3_l\.\w+)|"
    r"^prompt_embeddings$"
)
"""Names that adapter libraries give to their own modules and to the modules that they wrap."""
_QUANTIZED = re.compile(
    r"\.(SCB|CB|weight_format|qweight|qzeros|scales|g_idx|absmax|quant_map|nested_absmax|quant_state\..*|weight_scale|"
    r"weight_scale_inv|weight_packed|weight_zero_point|input_scale|_packed_params.*)$"
)
"""Names of tensors that quantization methods store besides the weights."""
_FLAT = re.compile(r"(^|\.)_?flat_param(_\d+)?$")
"""FSDP's name for flattened weights."""
FLOATS = {"F64", "F32", "F16", "BF16"}
"""Types of unquantized weights."""


@dataclass(frozen=True)
class Weights:
    """The weight files that a model is loaded from."""

    files: Mapping[Path, Mapping[str, Tensor]]
    """The tensors of each file."""
    behind: Mapping[Path, Mapping[str, Tensor]] = field(default_factory=dict)
    """The files of layers behind an embedder's pooling, in order, with their tensors by their names in the model."""

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name."""
        files = (*self.files.values(), *self.behind.values())
        return {name: tensor for tensors in files for name, tensor in tensors.items()}

    @property
    def dtype(self) -> torch.dtype:
        """The number format of most weights, whatever ``config.json`` says; results have it too."""
        return most_common(
            (_FORMATS.get(tensor.dtype), tensor.count)
            for tensor in self.tensors.values()
            if tensor.dtype not in _WHOLE_NUMBERS
        )


def read_weights(directory: Path) -> Weights:
    """The weights of a checkpoint, from their headers alone: one file, or the shards in an index.

    Other weight files in the directory (an optimizer's, an adapter's) are not read.

    Raises:
        CheckpointError: files are missing, or their content does not match.
    """
    single = directory / WEIGHTS
    return Weights({single: _header(directory, single)}) if single.is_file() else _read_shards(directory)


def place_weights(weights: Weights, into: Path, names: Mapping[str, str]) -> None:
    """Place weights in the directory to be loaded: links to the files, or copies if names change.

    Args:
        names: the name to load each weight by.
    """
    for path, tensors in weights.files.items():
        if all(names[name] == name for name in tensors):
            (into / path.name).symlink_to(path.resolve())
        else:
            copy_renamed(path, into / path.name, names)
    for place, path in enumerate(weights.behind, start=2):
        (into / DENSE.format(place)).mkdir()
        (into / DENSE.format(place) / DENSE_WEIGHTS).symlink_to(path.resolve())
    if WEIGHTS not in {path.name for path in weights.files}:
        (into / WEIGHTS_INDEX).write_text(json.dumps(_index(weights, names)), encoding="utf-8")


def _index(weights: Weights, names: Mapping[str, str]) -> dict[str, Any]:
    mapped = {names[name]: path.name for path, tensors in weights.files.items() for name in tensors}
    total = sum(tensor.end - tensor.begin for tensors in weights.files.values() for tensor in tensors.values())
    return {"metadata": {"total_size": total}, "weight_map": mapped}


def _read_shards(directory: Path) -> Weights:
    mapped = _mapped(directory)
    names = sorted(set(mapped.values()))
    absent = next((name for name in names if not (directory / name).is_file()), None)
    if absent is not None:
        raise _refused(directory, WEIGHTS_INDEX, f"it names {absent!r}, which is not there")
    shards = {name: _header(directory, directory / name) for name in names}
    for tensor, name in mapped.items():
        if tensor not in shards[name]:
            raise _refused(directory, WEIGHTS_INDEX, f"it looks for tensor {tensor[:80]!r} in {name}, which lacks it")
    if sum(map(len, shards.values())) != len(mapped):
        raise _refused(directory, WEIGHTS_INDEX, "it does not name every tensor of its files once")
    return Weights({directory / name: tensors for name, tensors in shards.items()})


def _mapped(directory: Path) -> dict[str, str]:
    """The file of each tensor, from the index."""
    path = directory / WEIGHTS_INDEX
    if not path.is_file():
        remedy = misnamed_weights([path.name for path in directory.iterdir()]) or remedy_in(directory)
        raise CheckpointError(f"checkpoint '{directory}' has neither {WEIGHTS} nor {WEIGHTS_INDEX}; {remedy}")
    try:
        index: Any = read_json(path, INDEX_BYTES)
    except (OSError, ValueError) as error:
        raise _refused(directory, WEIGHTS_INDEX, str(error)) from None
    mapped = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(mapped, dict) or not mapped or len(mapped) > TENSORS:
        raise _refused(directory, WEIGHTS_INDEX, f"it has no weight_map of 1 to {TENSORS} tensors")
    strange = next((name for name in mapped.values() if not isinstance(name, str) or not is_shard(name)), None)
    if strange is not None:
        raise _refused(
            directory, WEIGHTS_INDEX, f"it names {str(strange)[:80]!r}, which is not a file of weights beside it"
        )
    return mapped


def check_whole(directory: Path, tensors: Mapping[str, Tensor]) -> None:
    """Check that weights are those of a whole model, as far as their names and sizes show.

    Raises:
        CheckpointError: they are not; the message names some and what to do.
    """
    kinds = (
        (
            [name for name in tensors if _ADAPTER.search(name)],
            f"hold an adapter (LoRA or the like) that is not merged into the model; {MERGE}",
        ),
        (
            [name for name in tensors if _FLAT.search(name)],
            "hold many of FSDP's in one; save the model again with FULL_STATE_DICT",
        ),
        (
            [name for name, tensor in tensors.items() if not tensor.count],
            "are empty, as DeepSpeed's ZeRO-3 leaves them where it does not gather them; set "
            "stage3_gather_16bit_weights_on_model_save to true and save again, or restore them with zero_to_fp32.py",
        ),
        (
            [name for name in tensors if _QUANTIZED.search(name)],
            "are those of a quantized model; give the model with its whole weights",
        ),
    )
    for names, what in kinds:
        if names:
            raise CheckpointError(f"checkpoint '{directory}' cannot be loaded: weights {what} ({some(names)})")


def some(names: list[str]) -> str:
    """The first of some names, and their number."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _header(directory: Path, path: Path) -> dict[str, Tensor]:
    try:
        return read_header(path)
    except (OSError, ValueError) as error:
        raise _refused(directory, path.name, str(error)) from None


def _refused(directory: Path, name: str, why: str) -> CheckpointError:
    return CheckpointError(f"checkpoint '{directory}' cannot be loaded: {name}: {why}; copy it again")

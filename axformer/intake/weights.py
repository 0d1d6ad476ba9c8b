"""Which files of a checkpoint hold its weights, and whether they hold what they claim."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from axformer.errors import CheckpointError
from axformer.intake.headers import Tensor, read_header
from axformer.intake.limits import INDEX_BYTES, TENSORS
from axformer.intake.names import WEIGHTS, WEIGHTS_INDEX, is_shard
from axformer.intake.strict_json import read_json
from axformer.number_format import most_common

_FORMATS = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
_WHOLE_NUMBERS = frozenset({"BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"})


@dataclass(frozen=True)
class Weights:
    """The files that a model is loaded from."""

    files: Mapping[Path, Mapping[str, Tensor]]
    """Each with the tensors in it."""

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name."""
        return {name: tensor for tensors in self.files.values() for name, tensor in tensors.items()}

    @property
    def dtype(self) -> torch.dtype:
        """The number format of most of them, whatever ``config.json`` says: the one that results have."""
        return most_common(
            (_FORMATS.get(tensor.dtype), tensor.count)
            for tensor in self.tensors.values()
            if tensor.dtype not in _WHOLE_NUMBERS
        )


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files of a checkpoint, in order of name.

    Raises:
        CheckpointError: there is none.
    """
    files = sorted(path for path in directory.glob("*.safetensors") if is_shard(path.name))
    if not files:
        remedy = ""
        if any(directory.glob("*.bin")):
            remedy = (
                "; pickled weights are not read, save the model again with save_pretrained, which writes model.safetensors: "
                "AutoModelForSequenceClassification.from_pretrained(DIR).save_pretrained(DIR), or the class of your model"
            )
        raise CheckpointError(f"checkpoint '{directory}' has no .safetensors file{remedy}")
    return files


def read_weights(directory: Path) -> Weights:
    """The weights of a checkpoint, by their headers alone: one file, or the shards that an index names.

    Raises:
        CheckpointError: files are missing, or hold something else than they claim.
    """
    present = {path.name: path for path in weight_files(directory)}
    if WEIGHTS in present:
        path = present[WEIGHTS]
        return Weights({path: _header(directory, path)})
    mapped = _mapped(directory)
    absent = sorted(set(mapped.values()) - set(present))
    if absent:
        raise _refused(directory, WEIGHTS_INDEX, f"it names {absent[0]!r}, which is not there")
    files = {present[name]: _header(directory, present[name]) for name in sorted(set(mapped.values()))}
    for tensor, name in mapped.items():
        if tensor not in files[present[name]]:
            raise _refused(directory, WEIGHTS_INDEX, f"it looks for tensor {tensor[:80]!r} in {name}, which lacks it")
    if sum(map(len, files.values())) != len(mapped):
        raise _refused(directory, WEIGHTS_INDEX, "it does not name every tensor of its files once")
    return Weights(files)


def _mapped(directory: Path) -> dict[str, str]:
    """The file of each tensor, as the index has it."""
    path = directory / WEIGHTS_INDEX
    if not path.is_file():
        raise CheckpointError(
            f"checkpoint '{directory}' has neither {WEIGHTS} nor {WEIGHTS_INDEX}; save it again with save_pretrained"
        )
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
            directory, WEIGHTS_INDEX, f"it names {str(strange)[:80]!r}, which is no file of weights beside it"
        )
    return mapped


def _header(directory: Path, path: Path) -> dict[str, Tensor]:
    try:
        return read_header(path)
    except (OSError, ValueError) as error:
        raise _refused(directory, path.name, str(error)) from None


def _refused(directory: Path, name: str, why: str) -> CheckpointError:
    return CheckpointError(f"checkpoint '{directory}' cannot be loaded: {name}: {why}; copy it again")

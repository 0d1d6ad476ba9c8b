"""Check the header of a safetensors file before allocating what it declares.

A file consists of the length of the header in 8 bytes, the header (a JSON object with type, shape and place of each tensor),
and the tensors' bytes without gaps (a rule of the format, which keeps other content from hiding in a file).
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from axformer.intake.limits import HEADER_BYTES, NAME_LENGTH, TENSOR_DIMENSIONS, TENSORS
from axformer.intake.strict_json import parse_json

_LENGTH_BYTES = 8
_METADATA = "__metadata__"
_FIELDS = {"dtype", "shape", "data_offsets"}
_ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip
"""Bytes per number, by the format's name of the type."""
_LARGEST = 1 << 48
"""Largest dimension or offset: more than any disk has, and small enough for fast exact products."""


@dataclass(frozen=True)
class Tensor:
    """A tensor as its header describes it."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    """Offset of its bytes from the end of the header."""
    end: int

    @property
    def count(self) -> int:
        """Number of its elements."""
        return prod(self.shape)


def read_header(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name.

    Raises:
        OSError: the file cannot be read.
        ValueError: its header is not valid; the message says why.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if size < _LENGTH_BYTES or length > min(HEADER_BYTES, size - _LENGTH_BYTES):
            raise ValueError(f"it claims a header of {length} bytes, which the file of {size} bytes cannot hold")
        content = file.read(length)
    try:
        header = parse_json(content)
    except ValueError as error:
        raise ValueError(f"its header cannot be read: {error}") from None
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    return _tensors(header, size - _LENGTH_BYTES - length)


def copy_renamed(path: Path, into: Path, names: Mapping[str, str]) -> None:
    """Copy a file whose header was read, with other tensor names."""
    with path.open("rb") as file, into.open("wb") as copy:
        header = json.loads(file.read(int.from_bytes(file.read(_LENGTH_BYTES), "little")))
        content = json.dumps({names.get(name, name): value for name, value in header.items()}).encode()
        content += b" " * (-len(content) % _LENGTH_BYTES)  # so that numbers are aligned
        copy.write(len(content).to_bytes(_LENGTH_BYTES, "little") + content)
        shutil.copyfileobj(file, copy)


def _tensors(header: dict[str, Any], data_bytes: int) -> dict[str, Tensor]:
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("the notes in its header are not texts")
    if len(header) > TENSORS:
        raise ValueError(f"it names {len(header)} tensors, at most {TENSORS} are read")
    tensors = {name: _tensor(name, entry) for name, entry in header.items()}
    places = sorted((tensor.begin, tensor.end, name) for name, tensor in tensors.items())
    if places and places[0][0] != 0:
        raise ValueError(f"the bytes before tensor '{places[0][2]}' belong to none")
    for (_, end, _), (begin, _, name) in pairwise(places):
        if begin != end:
            raise ValueError(f"tensor '{name}' begins at byte {begin}, the one before it ends at {end}")
    declared = max((end for _, end, _ in places), default=0)
    if declared != data_bytes:
        raise ValueError(f"its header declares {declared} bytes of tensors, the file has {data_bytes}")
    return tensors


def _tensor(name: str, entry: Any) -> Tensor:
    if not 0 < len(name) <= NAME_LENGTH or not name.isprintable():
        raise ValueError(f"a tensor has the name {name[:40]!r}, which is empty, too long or unprintable")
    if not isinstance(entry, dict) or set(entry) != _FIELDS:
        raise ValueError(f"tensor '{name}' is described by other fields than {', '.join(sorted(_FIELDS))}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _ITEM_BYTES:
        raise ValueError(f"tensor '{name}' holds numbers of type {str(dtype)[:40]!r}, which is not read")
    if not _are_counts(shape) or len(shape) > TENSOR_DIMENSIONS:
        raise ValueError(f"tensor '{name}' has a shape of other things than up to {TENSOR_DIMENSIONS} counts")
    if not _are_counts(offsets) or len(offsets) != 2:
        raise ValueError(f"tensor '{name}' has a place that is not begin and end")
    tensor = Tensor(dtype, tuple(shape), *offsets)
    if tensor.end - tensor.begin != tensor.count * _ITEM_BYTES[dtype]:
        raise ValueError(f"tensor '{name}' has {tensor.end - tensor.begin} bytes, its shape needs another number")
    return tensor


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value <= _LARGEST for value in values)

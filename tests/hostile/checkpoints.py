"""Checkpoints that something is wrong with, made from one that is whole."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axformer.errors import CheckpointError
from axformer.intake.checkpoint import load_checkpoint

Change = Callable[[Path], object]


def must_be_refused(whole: Path, tmp_path: Path, change: Change, message: str) -> None:
    """Change a copy of a checkpoint, and see that it is refused in one line that says why, and that nothing else is touched."""
    copy = tmp_path / "checkpoint"
    shutil.copytree(whole, copy)
    change(copy)
    before = listed(tmp_path)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(copy)
    assert "\n" not in str(caught.value)
    named = (str(copy), "models of type", "the tokenizer")
    assert any(name in str(caught.value) for name in named)
    assert listed(tmp_path) == before


def listed(directory: Path) -> dict[str, int]:
    """Every file below a directory with its size."""
    return {str(path): path.lstat().st_size for path in sorted(directory.rglob("*"))}


def header_of(path: Path) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file and the bytes behind it."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def with_header(header: object, data: bytes, *, length: int | None = None) -> bytes:
    """A safetensors file; the header as it is if it is bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def changed_header(change: Callable[[dict[str, Any], bytes], bytes]) -> Change:
    """Rewrite the weights' file from its header and data."""

    def rewrite(directory: Path) -> None:
        path = directory / "model.safetensors"
        path.write_bytes(change(*header_of(path)))

    return rewrite


def changed_json(name: str, **changes: object) -> Change:
    """Set keys of a JSON file; the file is made where it is not there."""

    def rewrite(directory: Path) -> None:
        path = directory / name
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(known | changes))

    return rewrite


def written(name: str, content: str | bytes) -> Change:
    """Put a file there."""

    def write(directory: Path) -> None:
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return write

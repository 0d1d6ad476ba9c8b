"""Collect the files of a finished job from the directory that its process wrote to.

The author of the inputs may have controlled the process, so a name may be malicious, and a file may be a link, a pipe, or
another user's file. Directories and files are opened by descriptor without following links, so the checked file is the one
that is read.
"""

import os
import re
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from axformer.config import METHODS
from axformer.forms.kinds import HUB, KINDS
from axformer.intake.names import MODULE_FILES
from axformer.wire.answer_sheet import NEEDED, SHEET

RESULT = "artifact"
"""Directory that the process writes the result to."""
_MOST_FILES = 200
"""A form has about ten files, and its weights may be split into some dozens."""
_CARD = "README.md"
_TOP = frozenset(
    {
        _CARD,
        "analysis.html",
        "analysis.json",
        "path.svg",
        "plan.json",
        "plan.svg",
        "ranking.jsonl",
        "repair.safetensors",
        "report.html",
        "report.json",
        "run.json",
        "trace.jsonl",
        NEEDED,
        SHEET,
    }
).union(*(kind.about.files for kind in METHODS.values()))
_FOLDERS = frozenset({"untouched", *(kind.directory for kind in KINDS.values())})
"""The forms, and the trained base model of a job with a new head."""
_INSIDE = frozenset({Path(file).parent.name for file in MODULE_FILES} | {f"{place}_Normalize" for place in range(2, 6)})
"""The directories of an embedder's modules in a form."""
_INSIDE_HUB = _INSIDE | {"onnx"}
"""The same in :data:`HUB`, with that of the graphs."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}\.(?:json|jinja|safetensors|txt|model|onnx|data)")
"""File names that transformers and onnx write."""


class DeliveryError(Exception):
    """The directory does not hold the result of a pass."""


def delivered(directory: Path, stack: ExitStack, most_bytes: int) -> dict[str, BinaryIO]:
    """Open the files of a result for reading, by name.

    Args:
        directory: the directory of the result; the process must have ended.

    Raises:
        DeliveryError: the directory holds something else, too much, or something that cannot be opened safely.
    """
    files: dict[str, BinaryIO] = {}
    top = _enter(str(directory), None, stack)
    for name in _names(top):
        if name in _TOP:
            files[name] = _open(name, top, stack)
        elif name in _FOLDERS:
            folder = _enter(name, top, stack)
            for inner in _names(folder):
                if inner in (_INSIDE_HUB if name == HUB else _INSIDE):
                    deeper = _enter(inner, folder, stack)
                    files |= {f"{name}/{inner}/{one}": _open(_known(one), deeper, stack) for one in _names(deeper)}
                else:
                    file = inner if name == HUB and inner == _CARD else _known(inner)
                    files[f"{name}/{inner}"] = _open(file, folder, stack)
        else:
            raise DeliveryError(f"it holds an unexpected entry {name[:200]!r}")
        if len(files) > _MOST_FILES:
            raise DeliveryError(f"more than {_MOST_FILES} files")
    if sum(os.fstat(file.fileno()).st_size for file in files.values()) > most_bytes:
        raise DeliveryError(f"more than {most_bytes} bytes")
    return files


def _known(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise DeliveryError(f"it holds an unexpected file {name[:200]!r}")
    return name


def _names(directory: int) -> list[str]:
    return sorted(os.listdir(directory))


def _enter(name: str, parent: int | None, stack: ExitStack) -> int:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        raise DeliveryError(f"'{Path(name).name}' is not a directory: {error.strerror}") from None
    stack.callback(os.close, descriptor)
    return descriptor


def _open(name: str, parent: int, stack: ExitStack) -> BinaryIO:
    """Open a regular file with a single name, which rules out hard links to other users' files."""
    try:
        # Without O_NONBLOCK, opening a pipe would block; for a regular file it makes no difference.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        raise DeliveryError(f"'{name}' cannot be opened: {error.strerror}") from None
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
        os.close(descriptor)
        raise DeliveryError(f"'{name}' is not a regular file with one name")
    return stack.enter_context(os.fdopen(descriptor, "rb"))

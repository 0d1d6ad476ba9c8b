"""Takes the files of a finished job from where its process has written them.

The author of the inputs may have controlled the process, so a name may be a trick and a file a link, a pipe, or another's
content. Directories are entered and files opened by descriptor, without following links, and what is read is what was judged.
"""

import os
import re
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from axformer.forms.kinds import KINDS

_MOST_FILES = 200
"""A form has about ten files, and its weights may lie in some dozens."""
_TOP = frozenset(
    {
        "README.md",
        "path.svg",
        "plan.json",
        "plan.svg",
        "repair.safetensors",
        "report.html",
        "report.json",
        "trace.jsonl",
    }
)
_FOLDERS = frozenset(kind.directory for kind in KINDS.values())
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}\.(?:json|jinja|safetensors|txt|model|onnx|data)")
"""What transformers and onnx write beside each other."""


class DeliveryError(Exception):
    """What lies there is not the result of a pass."""


def delivered(directory: Path, stack: ExitStack, most_bytes: int) -> dict[str, BinaryIO]:
    """The files of a result, open for reading, by name.

    Args:
        directory: where the process has put the result; it must have ended.
        stack: closes them.
        most_bytes: of all files together.

    Raises:
        DeliveryError: something else lies there, too.
    """
    files: dict[str, BinaryIO] = {}
    top = _enter(str(directory), None, stack)
    for name in _names(top):
        if name in _TOP:
            files[name] = _open(name, top, stack)
        elif name in _FOLDERS:
            folder = _enter(name, top, stack)
            for inner in _names(folder):
                if not _NAME.fullmatch(inner):
                    raise DeliveryError(f"a file of the name {inner[:200]!r}")
                files[f"{name}/{inner}"] = _open(inner, folder, stack)
        else:
            raise DeliveryError(f"something of the name {name[:200]!r}")
        if len(files) > _MOST_FILES:
            raise DeliveryError(f"more than {_MOST_FILES} files")
    if sum(os.fstat(file.fileno()).st_size for file in files.values()) > most_bytes:
        raise DeliveryError(f"more than {most_bytes} bytes")
    return files


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
    """A file with one name, so that it is nobody else's."""
    try:
        # A pipe would be waited for without O_NONBLOCK; of a file it changes nothing.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        raise DeliveryError(f"'{name}' cannot be opened: {error.strerror}") from None
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
        os.close(descriptor)
        raise DeliveryError(f"'{name}' is not a regular file with one name")
    return stack.enter_context(os.fdopen(descriptor, "rb"))

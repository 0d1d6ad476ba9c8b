"""Extract a checkpoint's files from an archive into one directory."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from store.errors import ArchiveError, ArchiveTooLargeError
from store.storage.archives import checkpoint_members, damage_told, unpacked_limit
from worker.fetching.errors import ArchiveInvalid, ReferenceTooLarge

_COPY_BYTES = 1 << 20
_PRIVATE = 0o600


def unpack(
    archive: Path, name: str, into: Path, *, max_bytes: int, max_members: int, watch: Callable[[], None] = lambda: None
) -> list[str]:
    """Write the checkpoint's files in an archive into a directory.

    Args:
        name: its file name, whose suffix tells the kind, and which messages show.
        into: an empty directory.
        max_bytes: most bytes after decompression.
        max_members: most members, of whatever kind.
        watch: called between pieces; what it raises ends the unpacking.

    Returns:
        The names written.

    Raises:
        ArchiveInvalid: it is damaged, or holds links, devices, climbing paths or the same name twice.
        ReferenceTooLarge: it holds more than the limits.
    """
    size = archive.stat().st_size
    left = most = unpacked_limit(size, max_bytes)
    written: list[str] = []
    try:
        with damage_told(name), archive.open("rb") as file:
            for own, content in checkpoint_members(file, size, name, max_bytes=most, max_members=max_members):
                (into / own).parent.mkdir(exist_ok=True)
                left -= _copy(_watched(content, watch), into / own, left, name, most)
                written.append(own)
    except ArchiveTooLargeError as error:
        raise ReferenceTooLarge(str(error)) from error
    except ArchiveError as error:
        raise ArchiveInvalid(str(error)) from error
    return written


def _watched(source: IO[bytes], watch: Callable[[], None]) -> Iterator[bytes]:
    while chunk := source.read(_COPY_BYTES):
        watch()
        yield chunk


def _copy(chunks: Iterator[bytes], destination: Path, left: int, name: str, max_bytes: int) -> int:
    copied = 0
    with _new(destination) as file:
        for chunk in chunks:
            copied += len(chunk)
            if copied > left:
                raise ArchiveTooLargeError(f"archive '{name}' unpacks to more than {max_bytes} bytes; pack less")
            file.write(chunk)
    return copied


def _new(path: Path) -> IO[bytes]:
    """Create a new private file; fails if anything exists at the path."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE), "wb")

"""Extract a checkpoint's files from an archive, member by member.

Paths in the archive are not followed. Only regular files whose base name may belong to a checkpoint are written, under that
base name, into one directory. An archive with links, devices or ``..`` in paths is refused as a whole, since nobody packs
those by accident.
"""

import errno
import gzip
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from axformer.intake.names import is_checkpoint_file
from worker.fetching.errors import ArchiveInvalid, ReferenceTooLarge

_COPY_BYTES = 1 << 20
_MOST_RATIO = 100
"""How many times its own size an archive may unpack to; weights hardly shrink at all."""
_SMALL_BYTES = 16 << 20
"""Any archive may unpack to this size, whatever its ratio."""
_READ_BYTES = 64 << 20
"""Most bytes read at a time: readers take lists of members and long headers whole, as long as these say they are."""
_ENCRYPTED = 0x1
_PRIVATE = 0o600
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, struct.error),
    *(EOFError, LookupError, OverflowError, RuntimeError, ValueError),
)
"""Exceptions of the archive readers for content that is not an archive."""


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def unpack(
    archive: Path,
    name: str,
    into: Path,
    *,
    max_bytes: int,
    max_members: int,
    watch: Callable[[], None] = lambda: None,
) -> list[str]:
    """Write the checkpoint's files in an archive into a directory.

    Args:
        archive: the archive.
        name: its file name, whose suffix tells the kind, and which messages show.
        into: an empty directory.
        max_bytes: most bytes after decompression.
        max_members: most members, of whatever kind.
        watch: called between pieces; what it raises ends the unpacking.

    Returns:
        The base names written.

    Raises:
        ArchiveInvalid: it is damaged, or holds links, devices, climbing paths or the same name twice.
        ReferenceTooLarge: it holds more than the limits.
    """
    is_zip = name.lower().endswith(".zip")
    left = max_bytes = min(max_bytes, max(_SMALL_BYTES, _MOST_RATIO * archive.stat().st_size))
    members = _zip_members(archive, name) if is_zip else _tar_members(archive, name, max_bytes)
    written: list[str] = []
    try:
        for count, (path, file) in enumerate(members, start=1):
            if count > max_members:
                raise ReferenceTooLarge(
                    f"archive '{name}' has more than {max_members} members; pack the checkpoint alone"
                )
            base = _safe_base(path, name)
            if file is None or not is_checkpoint_file(base):
                continue
            if base in written:
                raise ArchiveInvalid(f"archive '{name}' holds more than one '{base}'; pack one checkpoint alone")
            left -= _copy(_watched(file, watch), into / base, left, name, max_bytes)
            written.append(base)
    except _DAMAGED as error:
        raise _damaged(name, error) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # which is what seeking to an offset that cannot be gives
            raise
        raise _damaged(name, error) from error
    return written


_Member = tuple[str, IO[bytes] | None]
"""A member's path and content; directories have none."""


def _zip_members(archive: Path, name: str) -> Iterator[_Member]:
    with archive.open("rb") as raw, zipfile.ZipFile(_Bounded(raw, archive.stat().st_size, name)) as file:
        for info in file.infolist():
            mode = info.external_attr >> 16
            if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_IFMT(mode) == 0):
                raise _not_regular(info.filename, name)
            if info.flag_bits & _ENCRYPTED:
                raise ArchiveInvalid(f"archive '{name}' is encrypted; pack it without a password")
            if info.compress_type not in _METHODS:
                raise ArchiveInvalid(f"archive '{name}' is packed by a rare method; pack it with deflate")
            if info.is_dir():
                yield info.filename, None
            else:
                with file.open(info) as content:
                    yield info.filename, content


def _tar_members(archive: Path, name: str, max_bytes: int) -> Iterator[_Member]:
    with _tar_bytes(archive, name) as raw:
        bounded = _Bounded(raw, max_bytes + tarfile.RECORDSIZE, name)
        with tarfile.open(fileobj=bounded, mode="r:") as file:  # type: ignore[call-overload] # reads, seeks, tells
            for info in file:
                if info.isdir():
                    yield info.name, None
                elif info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
                    raise _not_regular(info.name, name)
                else:
                    yield info.name, file.extractfile(info)


@contextmanager
def _tar_bytes(archive: Path, name: str) -> Iterator[IO[bytes]]:
    if name.lower().endswith(".tar"):
        with archive.open("rb") as plain:
            yield plain
    else:
        with gzip.open(archive, "rb") as unpacked:
            yield unpacked  # type: ignore[misc] # a GzipFile reads bytes


class _Bounded:
    """A file that refuses to be read beyond a number of bytes, or too many at a time: headers cannot ask for all memory."""

    def __init__(self, file: IO[bytes], limit: int, name: str) -> None:
        self._file = file
        self._limit = limit
        self._name = name

    def read(self, size: int = -1) -> bytes:
        wished = size if size >= 0 else self._limit - self._file.tell()
        self._check(self._file.tell() + wished)
        if wished > _READ_BYTES:
            raise ArchiveInvalid(f"archive '{self._name}' has a header of {wished} bytes; pack the checkpoint alone")
        return self._file.read(wished)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._check(offset)
        return self._file.seek(offset, whence)

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def _check(self, position: int) -> None:
        if position > self._limit:
            raise ReferenceTooLarge(f"archive '{self._name}' unpacks to more than {self._limit} bytes; pack less")


def _watched(source: _Readable, watch: Callable[[], None]) -> Iterator[bytes]:
    while chunk := source.read(_COPY_BYTES):
        watch()
        yield chunk


def _copy(chunks: Iterator[bytes], destination: Path, left: int, name: str, max_bytes: int) -> int:
    copied = 0
    with _new(destination) as file:
        for chunk in chunks:
            copied += len(chunk)
            if copied > left:
                raise ReferenceTooLarge(f"archive '{name}' unpacks to more than {max_bytes} bytes; pack less")
            file.write(chunk)
    return copied


def _new(path: Path) -> IO[bytes]:
    """Create a new private file; fails if anything exists at the path."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE), "wb")


def _safe_base(path: str, name: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path:
        raise ArchiveInvalid(f"archive '{name}' holds the path {path!r}, which leaves it; pack relative paths")
    return pure.name


def _damaged(name: str, error: Exception) -> ArchiveInvalid:
    return ArchiveInvalid(f"archive '{name}' is damaged ({error}); pack it again")


def _not_regular(path: str, name: str) -> ArchiveInvalid:
    return ArchiveInvalid(f"archive '{name}' holds {path!r}, which is not a regular file; pack files, not links")

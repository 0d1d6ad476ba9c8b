"""Read a checkpoint's files in an archive, member by member.

Paths in the archive are not followed: only regular files whose name may belong to a checkpoint are given, under that name. An
archive with links, devices or ``..`` in paths is refused as a whole, since nobody packs those by accident.
"""

import errno
import gzip
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, Any

from axformer.intake.names import is_checkpoint_file, name_in_checkpoint
from store.errors import ArchiveError, ArchiveTooLargeError

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")
_MOST_RATIO = 100
"""How many times its own size an archive may unpack to; weights hardly shrink at all."""
_SMALL_BYTES = 16 << 20
"""Any archive may unpack to this size, whatever its ratio."""
_READ_BYTES = 64 << 20
"""Most bytes read at a time: readers take lists of members and long headers whole, as long as these say they are."""
_DIRECTORY_BYTES = 1 << 20
"""Most bytes of a zip's directory, which its reader turns into objects, at a thousand times the time, before any member can be
counted. A thousand members with names of hundreds of letters fit."""
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, struct.error),
    *(EOFError, LookupError, OverflowError, RuntimeError, ValueError),
)
"""Exceptions of the archive readers for content that is not an archive."""


def is_archive(name: str) -> bool:
    """Whether a file of this name is read as an archive."""
    return name.lower().endswith(ARCHIVE_SUFFIXES)


def unpacked_limit(size: int, max_bytes: int) -> int:
    """Most bytes that an archive of a size may unpack to."""
    return min(max_bytes, max(_SMALL_BYTES, _MOST_RATIO * size))


def checkpoint_members(
    file: IO[bytes], size: int, name: str, *, max_bytes: int, max_members: int
) -> Iterator[tuple[str, IO[bytes]]]:
    """The checkpoint's files in an archive; each is read before the next is asked for. Read inside ``damage_told``.

    Args:
        file: the archive, which can seek.
        name: its file name, whose suffix tells the kind, and which messages show.
        max_bytes: most bytes after decompression, see :func:`unpacked_limit`.
        max_members: most members, of whatever kind.

    Raises:
        ArchiveError: it holds links, devices, climbing paths or the same name twice.
        ArchiveTooLargeError: it holds more than the limits.
    """
    seen: set[str] = set()
    members = _zip_members(file, size, name) if name.lower().endswith(".zip") else _tar_members(file, name, max_bytes)
    for count, (path, content) in enumerate(members, start=1):
        if count > max_members:
            raise ArchiveTooLargeError(
                f"archive '{name}' has more than {max_members} members; pack the checkpoint alone"
            )
        own = _safe_name(path, name)
        if content is None or not is_checkpoint_file(own):
            continue
        if own in seen:
            raise ArchiveError(f"archive '{name}' holds more than one '{own}'; pack one checkpoint alone")
        seen.add(own)
        yield own, content


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """Turn what the archive readers raise for other content into one error.

    Raises:
        ArchiveError: the archive is damaged.
    """
    try:
        yield
    except _DAMAGED as error:
        raise _damaged(name, error) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # which is what seeking to an offset that cannot be gives
            raise
        raise _damaged(name, error) from error


_Member = tuple[str, IO[bytes] | None]
"""A member's path and content; directories have none."""


def _zip_members(raw: IO[bytes], size: int, name: str) -> Iterator[_Member]:
    bounded: Any = _Bounded(raw, size, name, _DIRECTORY_BYTES)  # reads, seeks, tells
    with zipfile.ZipFile(bounded) as file:
        bounded.most = _READ_BYTES
        for info in file.infolist():
            mode = info.external_attr >> 16
            if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_IFMT(mode) == 0):
                raise _not_regular(info.filename, name)
            if info.flag_bits & _ENCRYPTED:
                raise ArchiveError(f"archive '{name}' is encrypted; pack it without a password")
            if info.compress_type not in _METHODS:
                raise ArchiveError(f"archive '{name}' is packed by a rare method; pack it with deflate")
            if info.is_dir():
                yield info.filename, None
            else:
                with file.open(info) as content:
                    yield info.filename, content


def _tar_members(raw: IO[bytes], name: str, max_bytes: int) -> Iterator[_Member]:
    unpacked: Any = raw if name.lower().endswith(".tar") else gzip.open(raw, "rb")  # noqa: SIM115 - the caller closes the raw file
    bounded: Any = _Bounded(unpacked, max_bytes + tarfile.RECORDSIZE, name)
    with tarfile.open(fileobj=bounded, mode="r:") as file:
        for info in file:
            if info.isdir():
                yield info.name, None
            elif info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
                raise _not_regular(info.name, name)
            else:
                yield info.name, file.extractfile(info)


class _Bounded:
    """A file that refuses to be read beyond a number of bytes, or too many at a time: headers cannot ask for all memory."""

    def __init__(self, file: IO[bytes], limit: int, name: str, most: int = _READ_BYTES) -> None:
        self.most = most
        """At a time."""
        self._file = file
        self._limit = limit
        self._name = name

    def read(self, size: int = -1) -> bytes:
        wished = size if size >= 0 else self._limit - self._file.tell()
        self._check(self._file.tell() + wished)
        if wished > self.most:
            raise ArchiveError(f"archive '{self._name}' has a header of {wished} bytes; pack the checkpoint alone")
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
            raise ArchiveTooLargeError(f"archive '{self._name}' unpacks to more than {self._limit} bytes; pack less")


def _safe_name(path: str, name: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path:
        raise ArchiveError(f"archive '{name}' holds the path {path!r}, which leaves it; pack relative paths")
    return name_in_checkpoint(str(pure))


def _damaged(name: str, error: Exception) -> ArchiveError:
    return ArchiveError(f"archive '{name}' is damaged ({error}); pack it again")


def _not_regular(path: str, name: str) -> ArchiveError:
    return ArchiveError(f"archive '{name}' holds {path!r}, which is not a regular file; pack files, not links")

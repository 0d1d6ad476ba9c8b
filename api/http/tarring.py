"""Several stored files as one tar archive, read in pieces, never held whole."""

import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from store.storage.storage import Storage
from store.tables.artifacts import Artifact

_END = bytes(2 * tarfile.BLOCKSIZE)
"""Two empty blocks end an archive."""


@dataclass(frozen=True)
class Tar:
    """An archive to be sent."""

    size: int
    content: Iterator[bytes]


def tar_of(files: Sequence[Artifact], storage: Storage, folder: str) -> Tar:
    """The archive of files in a folder of the storage. It has no times, so the same files give the same archive.

    Raises:
        StorageError: one of them is not there.
    """
    parts = [(_header(file.name, file.bytes), storage.read(folder, file.sha256), file.bytes) for file in files]
    size = sum(len(header) + length + _padding(length) for header, _, length in parts) + len(_END)

    def content() -> Iterator[bytes]:
        for header, stored, length in parts:
            yield header
            yield from stored
            yield bytes(_padding(length))
        yield _END

    return Tar(size, content())


def _header(name: str, length: int) -> bytes:
    about = tarfile.TarInfo(name)
    about.size = length
    return about.tobuf(tarfile.PAX_FORMAT)


def _padding(length: int) -> int:
    return -length % tarfile.BLOCKSIZE

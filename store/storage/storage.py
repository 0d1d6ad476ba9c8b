"""Storage of uploads and artifacts. Content is stored by its hash inside its owner's folder, so a worker that was taken for
dead cannot change what another wrote, and content is always complete.

Both kinds keep the laws of ``Storage``: this file has the one in a directory, ``object_storage.py`` the one in a bucket.
"""

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from store.errors import StorageError, StorageRefusedError
from store.settings import Settings
from store.storage.content import Stored, checked, copy_counted

READ_CHUNK = 2**20
"""Bytes read at a time: large enough to keep a network busy, small enough for many readers."""
_INCOMING = "incoming"
_DATABASE_NOTE = "database"
_PRIVATE_DIRECTORY, _PRIVATE_FILE = 0o700, 0o600
_FOLDER = re.compile(r"[a-z]+/[a-z0-9_]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def job_folder(job_id: str) -> str:
    """The folder of a job's artifacts."""
    return f"jobs/{job_id}"


def upload_folder(upload_id: str) -> str:
    """The folder of an upload."""
    return f"uploads/{upload_id}"


def is_folder(folder: str) -> bool:
    """Whether this is a folder of a storage, such as ``jobs/job_0199``."""
    return _FOLDER.fullmatch(folder) is not None


def check_folder(folder: str) -> str:
    """The folder, if it is one.

    Raises:
        StorageError: it is none.
    """
    if not is_folder(folder):
        raise StorageError(f"'{folder}' is not a folder of the storage; folders look like jobs/job_0199")
    return folder


def check_sha256(sha256: str) -> str:
    """The hash, if it is one.

    Raises:
        StorageError: it is none.
    """
    if not _SHA256.fullmatch(sha256):
        raise StorageError(f"'{sha256}' is not a SHA-256 in hexadecimal")
    return sha256


class Storage(Protocol):
    """Keeps content by folder and hash. Every method may raise ``StorageUnavailableError``."""

    def check(self) -> None:
        """Write something, read it, and remove it.

        Raises:
            StorageRefusedError: this process may not; the message says what to do.
        """

    def put(self, folder: str, chunks: Iterable[bytes], *, max_bytes: int | None = None) -> Stored:
        """Store content, completely or not at all.

        Raises:
            TooLargeError: there are more than ``max_bytes``.
            StorageFullError: there is no room for it.
        """

    def read(self, folder: str, sha256: str, *, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The content from byte ``start`` to ``stop`` (half open) in chunks. Content that is read whole is checked on the way,
        and its last chunk comes only if all of it is what was stored.

        Raises:
            StorageError: it is not there.
            ContentChangedError: it is not what was stored; the chunks may raise this too.
        """

    def address(self, folder: str, sha256: str, *, name: str, media_type: str, seconds: int) -> str | None:
        """An address at which anybody can download the content for some seconds, as a file of this name and type; None if the
        storage has no such addresses."""

    def delete(self, folder: str) -> None:
        """Remove a folder with its contents, if it exists."""

    def folders(self, kind: str) -> list[str]:
        """The folders that begin with ``kind``, for example ``jobs``."""

    def contents(self, folder: str, *, older_than: float) -> list[str]:
        """Hashes of the contents that are older than some seconds."""

    def delete_content(self, folder: str, sha256: str) -> None:
        """Remove one content of a folder, if it exists."""

    def delete_unfinished(self, *, older_than: float) -> int:
        """Remove unfinished files untouched for some seconds, and return their number; their writers are dead."""

    def owner(self) -> str | None:
        """What was noted of the database that the files belong to; None if nothing was."""

    def set_owner(self, note: str) -> None:
        """Note which database the files belong to."""


class LocalStorage:
    """A storage in a local directory that only its owner can read."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def check(self) -> None:
        """See ``Storage.check``."""
        probe = self._root / _INCOMING / secrets.token_hex()
        try:
            _make_private(self._root, probe.parent)
            probe.touch(mode=_PRIVATE_FILE, exist_ok=False)
            probe.unlink()
        except OSError as error:
            raise StorageRefusedError(
                f"the storage {self._root} cannot be written ({error.strerror}); give this user the directory, or name another "
                "with AXFORMER_STORAGE"
            ) from None

    def put(self, folder: str, chunks: Iterable[bytes], *, max_bytes: int | None = None) -> Stored:
        """See ``Storage.put``. The bytes are on the disk when this returns."""
        target = self._directory(folder)
        incoming = self._root / _INCOMING / secrets.token_hex()
        _make_private(self._root, incoming.parent)
        try:
            stored = _write(incoming, chunks, max_bytes)
            _make_private(self._root, target)
            incoming.replace(target / stored.sha256)
        finally:
            incoming.unlink(missing_ok=True)
        _sync_directory(target)
        return stored

    def read(self, folder: str, sha256: str, *, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """See ``Storage.read``."""
        path = self.path(folder, sha256)
        size = path.stat().st_size
        stop = size if stop is None else min(stop, size)
        chunks = _read(path, start, stop)
        return checked(chunks, f"{folder}/{sha256}", sha256) if stop - start == size else chunks

    def address(self, folder: str, sha256: str, **_: str | int) -> str | None:  # noqa: ARG002 - those of the protocol
        """None: files of a directory are downloaded through the API."""
        return None

    def path(self, folder: str, sha256: str) -> Path:
        """The file that holds the content; it must not be changed.

        Raises:
            StorageError: it is not there.
        """
        path = self._directory(folder) / check_sha256(sha256)
        if not path.is_file():
            raise StorageError(f"the storage has no {folder}/{sha256}; it was deleted, or written on another machine")
        return path

    def delete(self, folder: str) -> None:
        """See ``Storage.delete``."""
        doomed = self._root / _INCOMING / secrets.token_hex()
        _make_private(self._root, doomed.parent)
        with suppress(FileNotFoundError):
            self._directory(folder).rename(doomed)  # later readers see it complete or not at all
            shutil.rmtree(doomed)

    def folders(self, kind: str) -> list[str]:
        """See ``Storage.folders``."""
        return [f"{kind}/{name}" for name in _names(self._root / kind) if is_folder(f"{kind}/{name}")]

    def contents(self, folder: str, *, older_than: float) -> list[str]:
        """See ``Storage.contents``."""
        directory = self._directory(folder)
        return [name for name in _names(directory) if _age(directory / name) > older_than]

    def delete_content(self, folder: str, sha256: str) -> None:
        """See ``Storage.delete_content``."""
        (self._directory(folder) / check_sha256(sha256)).unlink(missing_ok=True)

    def delete_unfinished(self, *, older_than: float) -> int:
        """See ``Storage.delete_unfinished``."""
        return remove_old(self._root / _INCOMING, older_than)

    def owner(self) -> str | None:
        """See ``Storage.owner``."""
        note = self._root / _DATABASE_NOTE
        return note.read_text() if note.exists() else None

    def set_owner(self, note: str) -> None:
        """See ``Storage.set_owner``."""
        incoming = self._root / _INCOMING / secrets.token_hex()
        _make_private(self._root, incoming.parent)
        incoming.write_text(note)
        incoming.replace(self._root / _DATABASE_NOTE)

    def _directory(self, folder: str) -> Path:
        return self._root / check_folder(folder)


def remove_old(directory: Path, seconds: float) -> int:
    """Remove files and directories that have not been touched for some seconds, and return their number."""
    old = [directory / name for name in _names(directory) if _age(directory / name) > seconds]
    for path in old:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)  # another process may be removing it too
        else:
            path.unlink(missing_ok=True)
    return len(old)


def _names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(directory))
    except FileNotFoundError:
        return []


def _age(path: Path) -> float:
    """Seconds since the last write; 0 if the file is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _write(path: Path, chunks: Iterable[bytes], max_bytes: int | None) -> Stored:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, _PRIVATE_FILE), "wb") as file:
        stored = copy_counted(chunks, file, max_bytes)
        file.flush()
        os.fsync(file.fileno())
    return stored


def _read(path: Path, start: int, stop: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        left = stop - start
        while left > 0 and (chunk := file.read(min(READ_CHUNK, left))):
            left -= len(chunk)
            yield chunk


def _make_private(root: Path, directory: Path) -> None:
    for path in reversed([directory, *directory.parents]):
        if path == root or root in path.parents:
            path.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)
        else:
            path.mkdir(exist_ok=True)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_storage(settings: Settings) -> Storage:
    """Open the storage, without connecting yet. Threads may share it, processes may not."""
    if settings.storage_bucket is None:
        return LocalStorage(settings.storage_dir)
    # Imported only here: a service whose files are in a directory needs no client of a store.
    from store.storage.bucket import Bucket
    from store.storage.object_storage import ObjectStorage

    name, prefix = settings.storage_bucket
    return ObjectStorage(Bucket(name, settings.object_store), prefix, settings.spool_dir)

"""Open what lies behind a reference that this process can read itself: an upload, or a file of this machine.

A file of this machine is read only under a directory that the operator has opened, with links resolved before, as the worker
does.
"""

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy.orm import Session

from api.services import uploads
from store.errors import StorageError
from store.references import Scheme, parse_reference
from store.session import Sessions, session_scope
from store.settings import Settings
from store.storage.storage import READ_CHUNK, Storage, upload_folder


class UnreadableError(Exception):
    """The content cannot be read; the message says why and what to do."""


@dataclass(frozen=True)
class ReferencedFile:
    """A file behind a reference."""

    name: str
    size: int
    file: IO[bytes]


@dataclass(frozen=True)
class StoredUpload:
    """What is known of an upload, for as long as its file is read."""

    id: str
    filename: str
    sha256: str
    bytes: int


Find = Callable[[str], StoredUpload]
"""Finds an upload of a team by its id."""


def found_in(session: Session, team_id: str) -> Find:
    """By an open session, for what is over in milliseconds."""

    def find(upload_id: str) -> StoredUpload:
        upload = uploads.find(session, team_id, upload_id)
        return StoredUpload(upload.id, upload.filename, upload.sha256, upload.bytes)

    return find


def found_by(sessions: Sessions, team_id: str) -> Find:
    """By a session for each, which is closed before the file is read: reading takes as long as files are large, and there are
    few sessions for all teams."""

    def find(upload_id: str) -> StoredUpload:
        with session_scope(sessions) as session:
            return found_in(session, team_id)(upload_id)

    return find


@dataclass(frozen=True)
class Contents:
    """What a team's references hold."""

    find: Find
    storage: Storage
    settings: Settings

    def name(self, uri: str, *, is_checkpoint: bool) -> str | None:
        """The file's own name; None if the reference leads elsewhere, which only a worker reads."""
        reference = parse_reference(uri, is_checkpoint=is_checkpoint)
        if reference.scheme is Scheme.UPLOAD:
            return self.find(reference.place).filename
        return Path(reference.path).name if reference.scheme is Scheme.FILE else None

    def directory(self, uri: str) -> Path | None:
        """The directory behind a reference; None if it is a file.

        Raises:
            UnreadableError: nothing is there.
        """
        reference = parse_reference(uri, is_checkpoint=True)
        if reference.scheme is not Scheme.FILE:
            return None
        path = self._resolved(Path(reference.path))
        return path if path.is_dir() else None

    @contextmanager
    def open(self, uri: str, *, is_checkpoint: bool) -> Iterator[ReferencedFile]:
        """The file behind a reference.

        Raises:
            UnreadableError: nothing is there, or it is no file.
        """
        reference = parse_reference(uri, is_checkpoint=is_checkpoint)
        if reference.scheme is Scheme.FILE:
            with self.open_file(Path(reference.path)) as content:
                yield content
            return
        upload = self.find(reference.place)
        raw: Any = io.BufferedReader(_Stored(self.storage, upload.id, upload.sha256, upload.bytes), READ_CHUNK)
        with raw:
            yield ReferencedFile(upload.filename, upload.bytes, raw)

    @contextmanager
    def open_file(self, path: Path) -> Iterator[ReferencedFile]:
        """A file of this machine: not a link that has come there since it was resolved, and no pipe.

        Raises:
            UnreadableError: nothing is there, or it is no file.
        """
        resolved = self._resolved(path)
        try:
            number = os.open(resolved, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise UnreadableError(f"'{path}' cannot be opened ({error.strerror}); check the path") from None
        with os.fdopen(number, "rb") as file:
            state = os.fstat(number)
            if not stat.S_ISREG(state.st_mode):
                raise UnreadableError(f"'{path}' is not a file; name one")
            yield ReferencedFile(path.name, state.st_size, file)

    def _resolved(self, path: Path) -> Path:
        """The path without links. A path outside of the opened directories is refused alike whether it exists or not."""
        try:
            resolved = path.resolve()
            is_inside = any(resolved.is_relative_to(root.resolve()) for root in self.settings.file_roots)
            if is_inside and resolved.exists():
                return resolved
        except (OSError, RuntimeError) as error:  # a name that is too long, links in a circle
            raise UnreadableError(f"'{path}' cannot be opened ({error}); check the path") from None
        why = "does not exist" if is_inside else "lies outside of the directories opened for file://"
        raise UnreadableError(f"'{path}' {why}; check the path")


class _Stored(io.RawIOBase):
    """Stored content as a file that can seek."""

    def __init__(self, storage: Storage, upload_id: str, sha256: str, size: int) -> None:
        self._storage, self._folder, self._sha256 = storage, upload_folder(upload_id), sha256
        self._size, self._place = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence])
        return self._place

    def readinto(self, into: Any) -> int:
        stop = min(self._place + len(into), self._size)
        if stop <= self._place:
            return 0
        try:
            read = b"".join(self._storage.read(self._folder, self._sha256, start=self._place, stop=stop))
        except StorageError as error:
            raise UnreadableError(f"the upload is lost: {error}; upload it again") from None
        into[: len(read)] = read
        self._place += len(read)
        return len(read)

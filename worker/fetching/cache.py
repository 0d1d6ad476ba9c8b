"""Fetched content, kept by its SHA-256, with a note of which version of which file it was.

Two workers may bring the same content at the same time: each writes a file of its own and renames it into place, so a
reader sees a whole file or none. Users of a file get a hard link of their own; clearing the cache harms nobody.

All teams share it, and it knows nothing of access rights: a note says what a source had, never who may read it. A caller must
ask the source first, with their own rights, before they read from here
(see :meth:`worker.fetching.source.ReferenceSource.open`).
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from store.storage.content import copy_counted
from store.storage.storage import remove_old

_READ_ONLY = 0o444


@dataclass(frozen=True)
class Entry:
    """Content that was fetched: which version of its file it was, what it hashes to, and how long it is."""

    version: str | None
    sha256: str
    size: int


@dataclass(frozen=True)
class _File:
    """Content that is kept: where, since when unused, and how long it is."""

    path: Path
    used: float
    size: int


class ContentCache:
    """Content under one directory: ``content/`` by hash, ``seen/`` by source, ``incoming/`` while it is written."""

    def __init__(self, root: Path) -> None:
        self._content = root / "content"
        self._seen = root / "seen"
        self._incoming = root / "incoming"
        for directory in (self._content, self._seen, self._incoming):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def free_bytes(self) -> int:
        """Bytes that are free on the disk that the content lies on."""
        return shutil.disk_usage(self._content).free

    def find(self, source: str) -> Entry | None:
        """What was last fetched from a source, if it is still kept."""
        try:
            entry = Entry(**json.loads(self._note(source).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return entry if self._path(entry.sha256).exists() else None

    def link(self, entry: Entry, destination: Path) -> bool:
        """Give the content another name; false if it is no longer kept."""
        try:
            os.link(self._path(entry.sha256), destination)
            os.utime(destination)  # the same file: it is in use, so others are cleared first
        except FileNotFoundError:
            return False
        return True

    def trim(self, max_bytes: int, *, unfinished_seconds: float) -> int:
        """Remove the least recently used content until at most ``max_bytes`` are left, and return the bytes removed.

        Unfinished downloads that were not touched for ``unfinished_seconds`` are removed too, and notes of removed content.
        """
        remove_old(self._incoming, unfinished_seconds)
        files = sorted(_measured(self._content), key=lambda file: file.used, reverse=True)
        total = cleared = 0
        for file in files:
            total += file.size
            if total > max_bytes:
                file.path.unlink(missing_ok=True)
                cleared += file.size
        for note in self._seen.iterdir() if cleared else ():
            self._forget_if_gone(note)
        return cleared

    def _forget_if_gone(self, note: Path) -> None:
        try:
            is_kept = self._path(json.loads(note.read_text())["sha256"]).exists()
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            is_kept = False
        if not is_kept:
            note.unlink(missing_ok=True)

    def add(self, source: str, version: str | None, chunks: Iterable[bytes], destination: Path) -> Entry:
        """Write content, keep it, and link it to ``destination``. If reading fails nothing is kept."""
        with NamedTemporaryFile(dir=self._incoming, delete=False) as file:
            incoming = Path(file.name)
            try:
                stored = copy_counted(chunks, file, None)
                file.close()
                entry = Entry(version, stored.sha256, stored.bytes)
                incoming.chmod(_READ_ONLY)
                os.link(incoming, destination)
                incoming.rename(self._path(entry.sha256))
            finally:
                incoming.unlink(missing_ok=True)
        if version is not None:
            self._remember(source, entry)
        return entry

    def _remember(self, source: str, entry: Entry) -> None:
        with NamedTemporaryFile("w", dir=self._incoming, delete=False) as file:
            json.dump(asdict(entry), file)
        Path(file.name).rename(self._note(source))

    def _note(self, source: str) -> Path:
        # A source may be a URL with a signature in it: only its hash is written down.
        return self._seen / hashlib.sha256(source.encode()).hexdigest()

    def _path(self, sha256: str) -> Path:
        return self._content / sha256


def _measured(directory: Path) -> Iterator[_File]:
    for path in directory.iterdir():
        try:
            status = path.stat()
        except FileNotFoundError:  # cleared by another
            continue
        yield _File(path, status.st_mtime, status.st_size)

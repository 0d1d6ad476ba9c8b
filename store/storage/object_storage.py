"""A storage in a bucket of an S3-compatible store, which several hosts share.

A key ends in the SHA-256 of its content, which is therefore counted and hashed on this host first, in a file without a name,
and then sent to its key in one request or one upload of many parts: an object is whole or not there.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from urllib.parse import quote

from store.errors import ContentChangedError, StorageError
from store.ids import new_id
from store.storage.bucket import BLOCK_BYTES, Bucket, Found
from store.storage.content import Stored, checked, copy_counted
from store.storage.storage import check_folder, check_sha256, is_folder

_DATABASE_NOTE = "database"
_PROBE, _PROBED = "prb", b"may be removed"
_MADE_OF = "sha256"
"""The field of an object's metadata that repeats the hash: one that somebody else has put there lacks it."""


class ObjectStorage:
    """A storage below a prefix of a bucket."""

    def __init__(self, bucket: Bucket, prefix: str, spool: Path) -> None:
        """
        Args:
            prefix: of their keys; empty, or without a slash at either end.
            spool: a directory for content on its way; nothing stays there.
        """
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._spool = spool

    def check(self) -> None:
        """See ``Storage.check``."""
        key = f"{self._prefix}probe/{new_id(_PROBE)}"
        self._bucket.put(key, BytesIO(_PROBED), len(_PROBED), {})
        b"".join(self._bucket.read(key, self._bucket.find(key), 0, len(_PROBED)))
        self._bucket.listed(key)
        self._bucket.delete(key)

    def put(self, folder: str, chunks: Iterable[bytes], *, max_bytes: int | None = None) -> Stored:
        """See ``Storage.put``."""
        check_folder(folder)
        self._spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        with SpooledTemporaryFile(BLOCK_BYTES, dir=str(self._spool)) as file:
            stored = copy_counted(chunks, file, max_bytes)
            file.seek(0)
            key = self._key(folder, stored.sha256)
            self._bucket.put(key, file, stored.bytes, {_MADE_OF: stored.sha256})
        return stored

    def read(self, folder: str, sha256: str, *, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """See ``Storage.read``. Content of one block is checked also where a part of it is read."""
        key = self._key(folder, sha256)
        found = self._bucket.find(key)
        if found.metadata.get(_MADE_OF) != sha256:
            raise ContentChangedError(
                f"{folder}/{sha256} was not put into the storage by this service; restore it from a backup, or make it again"
            )
        stop = found.size if stop is None else min(stop, found.size)
        if stop - start == found.size:
            return self._whole(key, found, sha256)
        if found.size <= BLOCK_BYTES:
            return (b"".join(whole)[start:stop] for whole in [self._whole(key, found, sha256)])
        return self._bucket.read(key, found, start, stop)

    def address(self, folder: str, sha256: str, *, name: str, media_type: str, seconds: int) -> str | None:
        """See ``Storage.address``."""
        return self._bucket.address(
            self._key(folder, sha256),
            seconds,
            ResponseContentType=media_type,
            ResponseContentDisposition=f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        )

    def delete(self, folder: str) -> None:
        """See ``Storage.delete``."""
        self._bucket.delete(*(entry.key for entry in self._bucket.listed(f"{self._prefix}{check_folder(folder)}/")))

    def folders(self, kind: str) -> list[str]:
        """See ``Storage.folders``."""
        found = (f"{kind}/{name}" for name in self._bucket.names(f"{self._prefix}{kind}/"))
        return [folder for folder in found if is_folder(folder)]

    def contents(self, folder: str, *, older_than: float) -> list[str]:
        """See ``Storage.contents``."""
        listed = self._bucket.listed(f"{self._prefix}{check_folder(folder)}/")
        return sorted(entry.key.rpartition("/")[2] for entry in listed if entry.age > older_than)

    def delete_content(self, folder: str, sha256: str) -> None:
        """See ``Storage.delete_content``."""
        self._bucket.delete(self._key(folder, sha256))

    def delete_unfinished(self, *, older_than: float) -> int:
        """See ``Storage.delete_unfinished``."""
        return self._bucket.abort_uploads(self._prefix, older_than)

    def owner(self, more: int = 2) -> str | None:
        """See ``Storage.owner``; a note that is written meanwhile is read up to ``more`` times again."""
        key = f"{self._prefix}{_DATABASE_NOTE}"
        try:
            found = self._bucket.find(key)
            return b"".join(self._bucket.read(key, found, 0, found.size)).decode()
        except ContentChangedError:  # by another janitor
            if not more:
                raise
            return self.owner(more - 1)
        except StorageError:
            return None

    def set_owner(self, note: str) -> None:
        """See ``Storage.set_owner``."""
        content = note.encode()
        self._bucket.put(f"{self._prefix}{_DATABASE_NOTE}", BytesIO(content), len(content), {})

    def _whole(self, key: str, found: Found, sha256: str) -> Iterator[bytes]:
        return checked(self._bucket.read(key, found, 0, found.size), key, sha256)

    def _key(self, folder: str, sha256: str) -> str:
        return f"{self._prefix}{check_folder(folder)}/{check_sha256(sha256)}"

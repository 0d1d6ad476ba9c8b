"""Files that the job's own team has sent."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from store.errors import ContentChangedError, StorageError
from store.references import ParsedReference
from store.storage.storage import Storage, upload_folder
from store.tables.files import Upload
from worker.fetching.errors import ReferenceDiffers, ReferenceMissing
from worker.fetching.source import SourceContent

FindUpload = Callable[[str], Upload | None]
"""Gives the team's upload with an id, or None, also where it is another team's."""


class UploadSource:
    """An ``upload:<id>`` reference."""

    def __init__(self, reference: ParsedReference, find: FindUpload, storage: Storage) -> None:
        self._reference = reference
        self._find = find
        self._storage = storage

    @property
    def filename(self) -> str:
        """See :class:`worker.fetching.source.ReferenceSource`."""
        return self._upload.filename

    def names(self) -> Sequence[str] | None:
        """None: an upload is one file."""
        return None

    @contextmanager
    def open(self, name: str | None, known: str | None) -> Iterator[SourceContent | None]:
        """See :class:`worker.fetching.source.ReferenceSource`."""
        assert name is None  # an upload has no files below it
        upload = self._upload
        if upload.sha256 == known:
            yield None
            return
        try:
            chunks = self._storage.read(upload_folder(upload.id), upload.sha256)
        except ContentChangedError as error:
            raise self._changed() from error
        except StorageError:
            raise self._missing() from None
        yield SourceContent(self._checked(chunks), upload.bytes, upload.sha256)

    def _checked(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from chunks
        except StorageError as error:
            raise self._changed() from error

    @cached_property
    def _upload(self) -> Upload:
        upload = self._find(self._reference.place)
        if upload is None:
            raise self._missing()
        return upload

    def _changed(self) -> ReferenceDiffers:
        return ReferenceDiffers(f"'{self._reference.uri}' was changed in the service's storage; upload the file again")

    def _missing(self) -> ReferenceMissing:
        return ReferenceMissing(f"'{self._reference.uri}' does not exist or was deleted; upload the file again")

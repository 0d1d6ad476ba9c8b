"""The source for each URI scheme, and the one of files that the job's own team has sent."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from store.errors import ContentChangedError, StorageError
from store.references import ParsedReference, Scheme
from store.storage.storage import Storage, upload_folder
from store.tables.files import Upload
from worker.fetching.errors import ReferenceDiffers, ReferenceForbidden, ReferenceMissing
from worker.fetching.http import HttpSource
from worker.fetching.hub import HubSource
from worker.fetching.local import LocalSource
from worker.fetching.policy import FetchPolicy
from worker.fetching.source import ReferenceSource, SourceContent

FindUpload = Callable[[str], Upload | None]
"""Gives the team's upload with an id, or None, also where it is another team's."""


class UploadSource(ReferenceSource):
    """An ``upload:<id>`` reference, which is one file."""

    def __init__(self, reference: ParsedReference, policy: FetchPolicy, find: FindUpload, storage: Storage) -> None:
        super().__init__(reference, policy)
        self._find = find
        self._storage = storage

    @property
    def filename(self) -> str:
        return self._upload.filename

    @contextmanager
    def open(self, name: str | None, known: str | None) -> Iterator[SourceContent | None]:
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


def open_source(
    reference: ParsedReference, policy: FetchPolicy, find_upload: FindUpload, storage: Storage
) -> ReferenceSource:
    """Open the source of a reference without reading anything yet.

    Raises:
        ReferenceForbidden: the operator does not allow the scheme.
    """
    match reference.scheme:
        case Scheme.HTTP if not policy.plain_http:
            raise ReferenceForbidden(f"'{reference.shown}' is not read over plain http; use an https:// address")
        case Scheme.HTTP | Scheme.HTTPS:
            return HttpSource(reference, policy)
        case Scheme.FILE:
            return LocalSource(reference, policy)
        case Scheme.HUB:
            return HubSource(reference, policy)
        case Scheme.S3 if policy.is_own(reference.place, reference.path):
            raise ReferenceForbidden(f"'{reference.shown}' is in the service's own storage; upload the file instead")
        case Scheme.S3:
            from worker.fetching.s3 import S3Source  # takes long to import, and few jobs need it

            return S3Source(reference, policy)
        case Scheme.UPLOAD:
            return UploadSource(reference, policy, find_upload, storage)

"""The source for each URI scheme."""

from store.references import ParsedReference, Scheme
from store.storage.storage import Storage
from worker.fetching.errors import ReferenceForbidden
from worker.fetching.http import HttpSource
from worker.fetching.hub import HubSource
from worker.fetching.local import LocalSource
from worker.fetching.policy import FetchPolicy
from worker.fetching.source import ReferenceSource
from worker.fetching.upload import FindUpload, UploadSource


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
            return UploadSource(reference, find_upload, storage)

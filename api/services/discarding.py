"""Remove files that no row names any more; what stays behind, the janitor of a worker removes later."""

import structlog

from store.errors import StoreError
from store.storage.storage import Storage

_LOG = structlog.get_logger(__name__)


def discard(storage: Storage, folder: str) -> None:
    """Remove a folder of the storage. A failure is logged for the operator, since the request is done."""
    try:
        storage.delete(folder)
    except (StoreError, OSError) as error:
        _LOG.error("files_left_behind", folder=folder, reason=str(error))

"""The storage that the settings name."""

from store.settings import Settings
from store.storage.storage import LocalStorage, Storage


def open_storage(settings: Settings) -> Storage:
    """Open the storage, without connecting yet. Threads may share it, processes may not."""
    if settings.storage_bucket is None:
        return LocalStorage(settings.storage_dir)
    # Imported only here: a service whose files are in a directory needs no client of a store.
    from store.storage.bucket import Bucket
    from store.storage.object_storage import ObjectStorage

    name, prefix = settings.storage_bucket
    return ObjectStorage(Bucket(name, settings.object_store), prefix, settings.spool_dir)

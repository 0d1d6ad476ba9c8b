"""Put files into a bucket of their owner, with a key of their owner."""

from collections.abc import Sequence

from store.errors import StorageFullError, StorageRefusedError, StorageUnavailableError
from store.references import Reference
from store.setting_groups import StorageSettings
from store.storage.bucket import Bucket, Key
from worker.handover.errors import HandoverError, refused, unavailable
from worker.handover.files import Outgoing

_LAST = ("report.json", "analysis.json")
"""Put there when all others are: where one of them is, all files are."""


def put_into_bucket(reference: Reference, token: str, files: Sequence[Outgoing], settings: StorageSettings) -> None:
    """Put files below a prefix, each whole or not at all, ``report.json`` or ``analysis.json`` last.

    Raises:
        HandoverError: the bucket refuses or fails.
    """
    shown, prefix = reference.shown, reference.path.strip("/")
    bucket = Bucket(reference.place, settings, Key(*token.split(":", 2)))
    try:
        for file in sorted(files, key=lambda file: (file.name in _LAST, file.name)):
            with file.path.open("rb") as content:
                bucket.put(f"{prefix}/{file.name}".lstrip("/"), content, file.bytes, {})
    except StorageRefusedError as error:
        raise refused(shown, error.code) from error
    except StorageUnavailableError as error:
        raise unavailable(shown, error.code) from error
    except StorageFullError as error:
        raise HandoverError("target_full", f"'{shown}' is full; make room, and ask for it again") from error

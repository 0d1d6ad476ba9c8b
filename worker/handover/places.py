"""Put files where their owner wants them: below a prefix of a bucket, or into a repository of the model hub."""

from collections.abc import Sequence

from huggingface_hub import HfApi

from axformer.errors import NotTakenError
from axformer.pushing import put
from store.errors import StorageFullError, StorageRefusedError, StorageUnavailableError
from store.references import ParsedReference
from store.setting_groups import StorageSettings
from store.storage.bucket import Bucket, Key
from worker.handover.files import HandoverError, Outgoing, refused, unavailable

_LAST = ("report.json", "analysis.json")
"""Put there when all others are: where one of them is, all files are."""


def put_into_bucket(
    reference: ParsedReference, token: str, files: Sequence[Outgoing], settings: StorageSettings
) -> None:
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


_MESSAGE = "Put the result of a job here"


def put_into_repository(reference: ParsedReference, token: str, files: Sequence[Outgoing], endpoint: str) -> None:
    """Put files into a repository, all at once; it is made if it is missing, for its owner's eyes only.

    Raises:
        HandoverError: the hub refuses or fails.
    """
    paths = {file.name: file.path for file in files}
    hub = HfApi(endpoint=endpoint, token=token)
    try:
        put(hub, reference.place, paths, _MESSAGE, private=True, branch=reference.revision)
    except NotTakenError as error:
        raise (unavailable if error.retryable else refused)(reference.shown, error.why) from error

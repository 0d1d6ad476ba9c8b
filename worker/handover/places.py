"""Put files where their owner wants them: below a prefix of a bucket, or into a repository of the model hub."""

from collections.abc import Sequence
from contextlib import ExitStack

import httpx2
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils.tqdm import disable_progress_bars

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


_MAIN_FORM = "model/"
"""The directory whose files are put at the top of the repository, where the hub looks for a model."""
_MESSAGE = "Put the result of a job here"
_SERVER_ERROR = 500


def put_into_repository(reference: ParsedReference, token: str, files: Sequence[Outgoing], endpoint: str) -> None:
    """Put files into a repository, all at once; it is made if it is missing, for its owner's eyes only.

    Raises:
        HandoverError: the hub refuses or fails.
    """
    disable_progress_bars()
    hub, shown = HfApi(endpoint=endpoint, token=token), reference.shown
    try:
        with ExitStack() as opened:
            # Open files go by plain requests, whose repetitions end; for paths the library would use hf_xet, whose do not.
            added = [
                CommitOperationAdd(file.name.removeprefix(_MAIN_FORM), opened.enter_context(file.path.open("rb")))
                for file in files
            ]
            hub.create_repo(reference.place, private=True, exist_ok=True)
            hub.create_commit(reference.place, added, commit_message=_MESSAGE, revision=reference.revision)
    except HfHubHTTPError as error:
        raise _meaning(error, shown) from error
    except RuntimeError as error:  # which the library makes of a large file that does not arrive
        cause = error.__cause__
        if isinstance(cause, HfHubHTTPError):
            raise _meaning(cause, shown) from error
        raise unavailable(shown, type(cause or error).__name__) from error
    except (httpx2.TransportError, OSError) as error:
        raise unavailable(shown, type(error).__name__) from error


def _meaning(error: HfHubHTTPError, shown: str) -> HandoverError:
    status = error.response.status_code
    if status >= _SERVER_ERROR or status == httpx2.codes.TOO_MANY_REQUESTS:
        return unavailable(shown, f"status {status}")
    return refused(shown, f"status {status}")

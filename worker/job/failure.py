"""The error of a failed job as its owner sees it: a code for programs, a message with a remedy, and no traceback."""

import errno
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import structlog

from axformer.errors import ArtifactError, CheckpointError, ConfigError, DataError, InputError
from axformer.wire.run import DATA
from store.errors import StorageFullError
from worker.fetching.errors import FetchError, SourceTooSlow, SourceUnavailable
from worker.job.inputs import InputsChangedError, JobInputs
from worker.job.lease import TookTooLongError
from worker.sandbox.errors import ProcessMisbehavedError, WorkFailedError

_LOG = structlog.get_logger(__name__)
_ID_BYTES = 6
_MESSAGE_CHARACTERS = 4000
"""Most characters of a message."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_OPTION = re.compile(r"(?<![\w'\"-])--[a-z]+(?:-[a-z]+)*(?![\w-])")
"""An option of a command, outside quotes."""
_FIELDS = {
    "--data": "validation",
    "--set": "config",
    "--accept-poor-model": "accept_poor_model",
    "--report": "reports",
    **{
        f"--{name}": name
        for name in (
            *DATA,
            "columns",
            "finetune",
            "head",
            "forms",
            "preset",
            "device",
            "against",
            "rows",
        )
    },
}
"""The field of a job for each option of ``axformer prune`` and ``analyze``; users of the API may not know the command line."""
INTERNAL_ERROR = "internal_error"
DISK_FULL = "disk_full"
OUT_OF_MEMORY = "out_of_memory"
UNSAFE_INPUT = "unsafe_input"


@dataclass(frozen=True)
class Failure:
    """The ``error`` of a failed job."""

    code: str
    message: str
    param: str | None = None
    """The part of the job that caused the error."""
    retryable: bool = False
    """Whether the unchanged job may succeed later."""

    def as_dict(self) -> dict[str, Any]:
        """The failure as it is stored. Messages quote untrusted text, so zero bytes and lone surrogates are replaced."""
        message = self.message.encode("utf-8", "replace").decode().replace("\0", "?")
        return asdict(self) | {"message": message[:_MESSAGE_CHARACTERS]}


class RefusedInputError(Exception):
    """The library refuses a job's input; ``failure`` says why, with the owner's names for files."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@contextmanager
def with_original_uris(inputs: JobInputs) -> Iterator[None]:
    """In the library's refusals, replace local paths by the owner's URIs and command line options by fields of the job.

    Raises:
        RefusedInputError: for every ``InputError`` inside.
    """
    try:
        yield
    except InputError as error:
        message = str(error)
        paths = {str(path): (part, inputs.names[part]) for part, path in inputs.paths.items()}
        blamed = next((part for path, (part, _) in paths.items() if path in message), None)
        for path, (_, shown) in paths.items():
            message = message.replace(path, shown)
        message = _OPTION.sub(lambda option: _FIELDS.get(option[0], option[0]), message)
        read = "validation" if "validation" in inputs.names else "unlabelled"
        raise RefusedInputError(Failure(error.code, message, _part_of(error, blamed, read))) from error


def failure_of(error: Exception) -> Failure:
    """The failure that the owner sees. An unexpected error is logged with an id, and only the id is shown."""
    if isinstance(error, RefusedInputError):
        return error.failure
    return _foreseen(error) or _unforeseen(error)


def _foreseen(error: Exception) -> Failure | None:
    match error:
        case ArtifactError():
            return Failure(error.code, str(error))
        case FetchError():
            retryable = isinstance(error, SourceUnavailable | SourceTooSlow)
            return Failure(error.code, str(error), error.param, retryable)
        case TookTooLongError():
            return Failure("took_too_long", str(error))
        case InputsChangedError():
            return Failure("inputs_changed", str(error), retryable=True)
        case ProcessMisbehavedError():
            _LOG.error("sandbox_misbehaved", reason=str(error))
            message = (
                "the process that worked on the checkpoint and the data did what it never should; they may be damaged or made "
                "to do harm, so check where they come from"
            )
            return Failure(UNSAFE_INPUT, message)
    return _shortage(error)


def _shortage(error: Exception) -> Failure | None:
    """The failure for a full disk or too little memory; None for other errors."""
    if isinstance(error, StorageFullError):
        message = "the service's storage is full; retry when the operator has made room"
        return Failure("storage_full", message, retryable=True)
    reason = error.reason if isinstance(error, WorkFailedError) else None
    if reason == DISK_FULL or (isinstance(error, OSError) and error.errno in _NO_SPACE):
        message = "the worker's disk is full; retry when the operator has made room"
        return Failure(DISK_FULL, message, retryable=True)
    if reason == "out_of_memory" or isinstance(error, MemoryError):
        message = (
            "the model and data need more memory than the worker has; lower cache_budget, batch_tokens or max_length"
        )
        return Failure(OUT_OF_MEMORY, message, "config")
    return None


def _unforeseen(error: Exception) -> Failure:
    error_id = secrets.token_hex(_ID_BYTES)
    detail = {"detail": error.detail} if isinstance(error, WorkFailedError) else {}
    _LOG.error("internal_error", error_id=error_id, exc_info=error, **detail)
    message = f"an error of the service stopped this job; retry it, or give the operator the id {error_id}"
    return Failure(INTERNAL_ERROR, message, retryable=True)


def _part_of(error: InputError, blamed: str | None, read: str) -> str | None:
    """The part of the job that an error speaks of, given the part whose path its message names, and the rows that decide."""
    match error:
        case CheckpointError():
            return "against" if blamed == "against" else "checkpoint"
        case ConfigError():
            return "reports" if str(error).startswith("--report ") else "config"
        case DataError():
            return blamed or read
        case _:
            return blamed

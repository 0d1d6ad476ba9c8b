"""Why a job failed, in the words of its owner: a code for programs, a message with the remedy, and no traceback."""

import errno
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import structlog

from axformer.errors import ArtifactError, CheckpointError, ConfigError, DataError, InputError
from store.tables.jobs import Job
from worker.fetching.errors import FetchError, SourceTooSlow, SourceUnavailable
from worker.fetching.reference import parse_reference
from worker.inputs import Inputs, InputsChangedError
from worker.sandbox.errors import ProcessMisbehavedError, WorkFailedError

_LOG = structlog.get_logger(__name__)
_ID_BYTES = 6
_MESSAGE_CHARACTERS = 4000
"""Of a message: nobody reads more."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
INTERNAL_ERROR = "internal_error"
OUT_OF_MEMORY = "out_of_memory"
UNSAFE_INPUT = "unsafe_input"


@dataclass(frozen=True)
class Failure:
    """The ``error`` of a failed job."""

    code: str
    message: str
    param: str | None = None
    """The part of the job that is to blame."""
    retryable: bool = False
    """Whether the same job may succeed later as it is."""

    def as_dict(self) -> dict[str, Any]:
        """The form that is stored: messages repeat what strangers wrote, and a database takes neither zero bytes nor halves
        of characters."""
        message = self.message.encode("utf-8", "replace").decode().replace("\0", "?")
        return asdict(self) | {"message": message[:_MESSAGE_CHARACTERS]}


class RefusedInputError(Exception):
    """The library refuses a job's input; ``failure`` says why in the owner's words."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@contextmanager
def in_owners_words(job: Job, inputs: Inputs) -> Iterator[None]:
    """Where the library refuses a local file, say which reference that was.

    Raises:
        RefusedInputError: for every ``InputError`` inside.
    """
    try:
        yield
    except InputError as error:
        message = str(error)
        paths = _owners_names(job, inputs)
        blamed = next((part for path, (part, _) in paths.items() if path in message), None)
        for path, (_, shown) in paths.items():
            message = message.replace(path, shown)
        raise RefusedInputError(Failure(error.code, message, _part_of(error, blamed))) from error


def failure_of(error: Exception) -> Failure:
    """What to tell the owner. An error that is not foreseen is logged under an id, and only the id is told."""
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
    """What the worker has too little of."""
    if _is_disk_full(error):
        message = "the worker's disk is full; retry when the operator has made room"
        return Failure("disk_full", message, retryable=True)
    if _is_out_of_memory(error):
        message = (
            "the model and data need more memory than the worker has; lower cache_budget, batch_tokens or max_length"
        )
        return Failure(OUT_OF_MEMORY, message, "config")
    return None


def _is_disk_full(error: Exception) -> bool:
    if isinstance(error, WorkFailedError):
        return error.reason == "disk_full"
    return isinstance(error, OSError) and error.errno in _NO_SPACE


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, WorkFailedError):
        return error.reason == "out_of_memory"
    return isinstance(error, MemoryError)


def _unforeseen(error: Exception) -> Failure:
    error_id = secrets.token_hex(_ID_BYTES)
    detail = {"detail": error.detail} if isinstance(error, WorkFailedError) else {}
    _LOG.error("internal_error", error_id=error_id, exc_info=error, **detail)
    message = f"an error of the service stopped this job; retry it, or give the operator the id {error_id}"
    return Failure(INTERNAL_ERROR, message, retryable=True)


def _owners_names(job: Job, inputs: Inputs) -> Mapping[str, tuple[str, str]]:
    """For each local path the part of the job and the reference that it stands for."""
    names = {
        str(inputs.checkpoint): ("checkpoint", job.checkpoint["uri"]),
        inputs.validation.path: ("validation", job.validation["uri"]),
    }
    if inputs.test is not None and job.test is not None:
        names[inputs.test.path] = ("test", job.test["uri"])
    if inputs.train is not None and job.train is not None:
        names[inputs.train.path] = ("train", job.train["uri"])
    return {path: (part, parse_reference(uri).shown) for path, (part, uri) in names.items()}


def _part_of(error: InputError, blamed: str | None) -> str | None:
    """The part of the job that an error speaks of, given the part whose path its message names."""
    match error:
        case CheckpointError():
            return "checkpoint"
        case ConfigError():
            return "config"
        case DataError():
            return blamed or "validation"
        case _:
            return blamed

"""A job's files on their way out: named as they should be there, and whole before any of them is sent."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.errors import StorageError, StorageUnavailableError
from store.storage.storage import Storage, job_folder
from store.tables.files import Artifact
from worker.base.trees import remove_tree
from worker.sandbox.workspace import locked_directory


class HandoverError(Exception):
    """An attempt failed.

    Args:
        code: stable, for programs.
        message: what was wrong and what to do, for the owner of the job.
        retryable: whether the next attempt may succeed.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable

    def as_dict(self) -> dict[str, Any]:
        """The error as it is stored."""
        return {"code": self.code, "message": str(self).replace("\0", "?")}


def refused(uri: str, why: str) -> HandoverError:
    """The place does not take the files with this token."""
    message = f"'{uri}' does not take the files with this token ({why}); check both, and ask for it again"
    return HandoverError("target_refused", message)


def unavailable(uri: str, why: str) -> HandoverError:
    """The place does not answer, or fails."""
    return HandoverError("target_unavailable", f"'{uri}' does not answer or fails ({why})", retryable=True)


@dataclass(frozen=True)
class Outgoing:
    """A file on this machine."""

    name: str
    """As the job names it."""
    path: Path
    bytes: int


@contextmanager
def brought(artifacts: Sequence[Artifact], storage: Storage, spool: Path) -> Iterator[list[Outgoing]]:
    """The files of a job in a directory that is removed afterwards, each compared with its SHA-256.

    Raises:
        HandoverError: one of them is gone or was changed, or the storage does not answer.
        OSError: there is no room for them.
    """
    directory, lock = locked_directory(spool)
    try:
        yield [_bring(artifact, storage, directory) for artifact in artifacts]
    finally:
        remove_tree(directory)
        os.close(lock)


def _bring(artifact: Artifact, storage: Storage, directory: Path) -> Outgoing:
    path = directory / artifact.sha256
    try:
        with path.open("wb") as file:
            for chunk in storage.read(job_folder(artifact.job_id), artifact.sha256):
                file.write(chunk)
    except StorageUnavailableError as error:
        message = "the service's storage does not answer"
        raise HandoverError("storage_unavailable", message, retryable=True) from error
    except StorageError as error:
        message = f"'{artifact.name}' is lost or was changed in the service's storage; run the job again"
        raise HandoverError("content_missing", message) from error
    return Outgoing(artifact.name, path, artifact.bytes)

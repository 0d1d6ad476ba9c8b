"""Download files of finished jobs: resumable, verified by SHA-256, and visible only when complete.

The received part of a file lies in a hidden directory next to the result, under its digest; a later download continues it.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from axformer.client.answers import Artifact
from axformer.client.connection import Connection, reading
from axformer.client.errors import ServiceError, TransferError
from axformer.client.patience import Outage

PARTS = ".axformer-parts"
ARCHIVE = "artifact.tar.gz"
"""The archive of all other files of a job."""
_ATTEMPTS = 2
"""The part left by an earlier download may be damaged; the second attempt starts without it."""

OnProgress = Callable[[int], None]
"""Called with the number of bytes that arrived or were already present."""


def choose(artifacts: Sequence[Artifact], names: Sequence[str] | None) -> list[Artifact]:
    """The files with these names, or by default all but the archive.

    Raises:
        TransferError: a file does not exist.
    """
    if names is None:
        return [artifact for artifact in artifacts if artifact.name != ARCHIVE]
    known = {artifact.name: artifact for artifact in artifacts}
    for name in names:
        if name not in known:
            raise TransferError(f"the job has no file '{name}'; it has {', '.join(known) or 'none'}")
    return [known[name] for name in names]


def fetch(connection: Connection, path: str, artifact: Artifact, directory: Path, on_progress: OnProgress) -> Path:
    """Download one file, unless it is already complete.

    Raises:
        TransferError: its name leads out of the directory, or its digest is wrong.
        ServiceError: the service refuses or does not answer.
    """
    target = _target(directory, artifact.name)
    if target.is_file() and target.stat().st_size == artifact.bytes and digest(target) == artifact.sha256:
        on_progress(artifact.bytes)
        return target
    part = directory / PARTS / artifact.sha256
    part.parent.mkdir(parents=True, exist_ok=True)
    arrived = 0

    def report_position(position: int) -> None:
        nonlocal arrived
        on_progress(position - arrived)
        arrived = position

    for _ in range(_ATTEMPTS):
        _bring(connection, path, artifact, part, report_position)
        if digest(part) == artifact.sha256:
            break
        part.unlink()
    else:
        raise TransferError(f"'{artifact.name}' arrived with another SHA-256 than {artifact.sha256}; try again")
    target.parent.mkdir(parents=True, exist_ok=True)
    part.replace(target)
    if not any(part.parent.iterdir()):
        part.parent.rmdir()
    return target


def _bring(connection: Connection, path: str, artifact: Artifact, part: Path, report_position: OnProgress) -> None:
    """Download all bytes of a file, however often the connection breaks."""
    outage = Outage(connection.patience)
    while True:
        before = _size(part)
        try:
            _go_on(connection, path, artifact, part, report_position)
        except ServiceError as error:
            if _size(part) > before:
                outage.is_over()
            outage.wait(error)
        else:
            return


def _go_on(connection: Connection, path: str, artifact: Artifact, part: Path, report_position: OnProgress) -> None:
    """Request the missing bytes of a file, and append them."""
    start = _size(part)
    if start == artifact.bytes and part.exists():
        report_position(start)
        return
    if start > artifact.bytes:
        start = 0
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-", "If-Range": f'"{artifact.sha256}"'}
    where = f"{path}/artifacts/{quote(artifact.name)}"
    with connection.open("GET", where, follow=True, headers=headers) as answer:
        if answer.status_code != HTTPStatus.PARTIAL_CONTENT:
            start = 0
        with part.open("r+b" if part.exists() else "xb") as file:
            file.truncate(start)
            file.seek(start)
            report_position(start)
            try:
                with reading(answer):
                    # Chunks as they arrive: the last one of a fixed size would be lost if the answer is cut off.
                    for chunk in answer.iter_raw():
                        file.write(chunk)
                        report_position(file.tell())
            finally:
                file.flush()
                os.fsync(file.fileno())


def _target(directory: Path, name: str) -> Path:
    """The path for a file of this name, which must lie in the directory and not among its parts."""
    path = PurePosixPath(name)
    if (
        path.is_absolute()
        or not path.parts
        or ".." in path.parts
        or "\\" in name
        or ":" in name
        or path.parts[0] == PARTS
    ):
        raise TransferError(f"the file name '{name}' leads out of the directory; nothing was written")
    target = directory / path
    if not target.resolve().is_relative_to(directory.resolve()):
        raise TransferError(f"'{target}' leads out of '{directory}' by a link; download into an empty directory")
    return target


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

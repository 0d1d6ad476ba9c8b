"""Puts the files of a finished pass into the storage: each one, and one archive of them all."""

import gzip
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from store.storage import READ_CHUNK, Storage, job_folder
from store.tables.artifacts import Artifact

ARCHIVE_NAME = "artifact.tar.gz"
_COMPRESSION = 1
"""Weights hardly shrink, so more would only take time."""
_MODE = 0o644
_MEDIA_TYPES = {
    ".gz": "application/gzip",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".md": "text/markdown; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_OTHER = "application/octet-stream"


def store_files(directory: Path, job_id: str, storage: Storage, check: Callable[[], None]) -> list[Artifact]:
    """Store everything below a directory and an archive of it.

    Args:
        directory: what the pass has published; the archive is written beside it.
        job_id: whose files these are.
        storage: where they go.
        check: called before each file; raises to break off.

    Returns:
        A row for each file, to be written when all are stored.
    """
    names = sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())
    archive = directory.with_name(ARCHIVE_NAME)
    _pack(directory, names, archive)
    files = {name: directory / name for name in names} | {ARCHIVE_NAME: archive}
    artifacts = []
    for name, path in files.items():
        check()
        stored = storage.put(job_folder(job_id), _chunks(path))
        media_type = _MEDIA_TYPES.get(path.suffix, _OTHER)
        row = Artifact(job_id=job_id, name=name, sha256=stored.sha256, bytes=stored.bytes, media_type=media_type)
        artifacts.append(row)
    return artifacts


def _pack(directory: Path, names: list[str], archive: Path) -> None:
    """Write an archive that depends on names and contents alone."""
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=_COMPRESSION, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = (directory / name).stat().st_size
            info.mode = _MODE
            with (directory / name).open("rb") as file:
                tar.addfile(info, file)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(READ_CHUNK):
            yield chunk

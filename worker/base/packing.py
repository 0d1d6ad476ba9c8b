"""Store the files of a finished job: each one, an archive of all of them, and what the service signs of them."""

import gzip
import os
import tarfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from axformer import __version__
from axformer.reporting.environment import commit
from axformer.wire.provenance import PROVENANCE, statement
from store.references import shown
from store.settings import Settings
from store.signing import result_key
from store.storage.storage import READ_CHUNK, Storage, job_folder
from store.tables.files import Artifact
from store.tables.jobs import Job

ARCHIVE_NAME = "artifact.tar.gz"
_COMPRESSION = 1
"""Weights hardly compress, so a higher level would only cost time."""
_MODE = 0o644
_MEDIA_TYPES = {
    ".gz": "application/gzip",
    ".html": "text/html; charset=utf-8",
    ".jinja": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".md": "text/markdown; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_OTHER = "application/octet-stream"


def store_files(
    files: Mapping[str, BinaryIO], archive: Path, job_id: str, storage: Storage, check: Callable[[], None]
) -> list[Artifact]:
    """Store files and an archive of them.

    Args:
        files: the files by name, open for reading.
        archive: path of the archive to write.
        check: called before each file; raises to stop.

    Returns:
        A row for each file, to be written once all are stored.
    """
    _pack(files, archive)
    with archive.open("rb") as packed:
        artifacts = []
        for name, file in {**files, ARCHIVE_NAME: packed}.items():
            check()
            file.seek(0)
            stored = storage.put(job_folder(job_id), iter(partial(file.read, READ_CHUNK), b""))
            media_type = _MEDIA_TYPES.get(PurePosixPath(name).suffix, _OTHER)
            row = Artifact(job_id=job_id, name=name, sha256=stored.sha256, bytes=stored.bytes, media_type=media_type)
            artifacts.append(row)
    return artifacts


def store_provenance(
    artifacts: Sequence[Artifact],
    job: Job,
    inputs: Mapping[str, str],
    worker: str,
    settings: Settings,
    storage: Storage,
) -> Artifact:
    """Store the signed statement on a job's stored files; the confined process has no part in it.

    Args:
        inputs: SHA-256 of the inputs, as they were fetched, by field.
        worker: who has measured.
    """
    assert job.started_at is not None, "the job is claimed"
    made = {
        "job": job.id,
        "kind": str(job.kind),
        "worker": worker,
        "started": job.started_at.isoformat(),
        "finished": datetime.now(UTC).isoformat(),
        "axformer": __version__,
        "commit": commit(),
    }
    sources = {part: {"uri": shown(job.sources[part]["uri"]), "sha256": sha256} for part, sha256 in inputs.items()}
    told = statement({file.name: file.sha256 for file in artifacts}, sources, made)
    content = result_key(settings).sign(told).model_dump_json().encode() + b"\n"
    stored = storage.put(job_folder(job.id), [content])
    return Artifact(
        job_id=job.id,
        name=PROVENANCE,
        sha256=stored.sha256,
        bytes=stored.bytes,
        media_type=_MEDIA_TYPES[".json"],
    )


def _pack(files: Mapping[str, BinaryIO], archive: Path) -> None:
    """Write an archive that depends only on names and contents."""
    with (
        archive.open("xb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=_COMPRESSION, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = os.fstat(files[name].fileno()).st_size
            info.mode = _MODE
            files[name].seek(0)
            tar.addfile(info, files[name])

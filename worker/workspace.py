"""A private directory for each run of a job, gone when the run is over."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

_PRIVATE = 0o700


@contextmanager
def private_directory(root: Path, job_id: str) -> Iterator[Path]:
    """A new directory that only this user can enter, removed at the end whatever happens.

    What killed workers have left of the same job is removed first.
    """
    root.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    remove_directories(root, job_id)
    directory = Path(mkdtemp(prefix=f"{job_id}.", dir=root))  # mode 0700
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def remove_directories(root: Path, job_id: str) -> None:
    """Remove the private directories of a job, whoever made them."""
    for leftover in root.glob(f"{job_id}.*"):
        shutil.rmtree(leftover, ignore_errors=True)

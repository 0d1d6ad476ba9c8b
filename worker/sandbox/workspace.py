"""A private directory for each run of a job, removed when the run ends, but for the state that a later run continues from.

It may be created before there is a job. Until then it lies among the waiting directories, and a lock that ends with its
process protects it, so that the leftovers of killed workers are found and removed.
"""

import fcntl
import os
import time
from pathlib import Path
from tempfile import mkdtemp

from worker.base.trees import remove_tree

_PRIVATE = 0o700
_KEPT = "kept"
"""How the directory is called that holds the state of a job between two runs, behind the job's id."""
_YOUNG_SECONDS = 60.0
"""A younger directory may have been created just now and not be locked yet."""


class Workspace:
    """A directory that only this user can enter. It stays until it is removed."""

    def __init__(self, waiting: Path, state: str) -> None:
        """Create the directory, without a job.

        Args:
            waiting: parent of the directories without a job.
            state: name of the directory inside it that outlives it once it has a job.
        """
        self._state = state
        self._kept: Path | None = None
        waiting.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
        _remove_left(waiting)
        self.path = Path(mkdtemp(dir=waiting))  # mode 0700
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def give_to(self, root: Path, job_id: str) -> None:
        """Move it to the parent of the jobs' directories, on the same disk.

        Of the leftovers of the same job there, the latest state moves into it; the rest is removed.
        """
        root.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
        left = [path / self._state for path in root.glob(f"{job_id}.*") if _is_directory(path / self._state)]
        if left:
            max(left, key=lambda path: path.stat().st_mtime).rename(self.path / self._state)
        remove_directories(root, job_id)
        self.path = self.path.rename(root / f"{job_id}.{self.path.name}")
        self._kept = root / f"{job_id}.{_KEPT}"

    def remove(self) -> None:
        """Remove the directory and its contents, but keep the state for the job's next run on this machine."""
        if self._kept is not None and _is_directory(self.path / self._state):
            target = self._kept / self._state
            remove_tree(target)
            target.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
            (self.path / self._state).rename(target)
        remove_tree(self.path)
        os.close(self._lock)


def remove_directories(root: Path, job_id: str) -> None:
    """Remove the private directories of a job, whichever worker created them."""
    for leftover in root.glob(f"{job_id}.*"):
        remove_tree(leftover)


def _is_directory(path: Path) -> bool:
    """Whether a process, which may be hostile, has left a directory there and no link."""
    return path.is_dir() and not path.is_symlink()


def _remove_left(waiting: Path) -> None:
    for directory in waiting.iterdir():
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:  # gone, or another user's
            continue
        try:
            if time.time() - os.fstat(descriptor).st_mtime > _YOUNG_SECONDS:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(directory)
        except BlockingIOError:  # its process is alive
            continue
        finally:
            os.close(descriptor)

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
        self.path, self._lock = locked_directory(waiting)

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


def locked_directory(parent: Path) -> tuple[Path, int]:
    """Make a private directory, and remove what dead processes have left beside it; also gives its lock, a descriptor."""
    parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    remove_unlocked(parent)
    path = Path(mkdtemp(dir=parent))  # mode 0700
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return path, lock


def remove_unlocked(parent: Path) -> int:
    """Remove the directories whose processes have died, and return their number."""
    removed = 0
    for directory in parent.iterdir() if parent.exists() else ():
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:  # gone, another user's, or no directory
            continue
        try:
            if time.time() - os.fstat(descriptor).st_mtime > _YOUNG_SECONDS:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                removed += remove_tree(directory)
        except BlockingIOError:  # its process is alive
            continue
        finally:
            os.close(descriptor)
    return removed

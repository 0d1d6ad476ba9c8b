"""Threads of the main process that watch: the disk that jobs fill, whether the other threads do their work, the audit log."""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog
from sqlalchemy.exc import NoResultFound, SQLAlchemyError

from store.errors import LeaseLostError
from store.repositories.audit import chain
from store.repositories.leases import finish_failed
from store.repositories.workers import note_successes
from store.session import Sessions, session_scope
from store.settings import Settings
from store.states import ACTIVE, TERMINAL
from store.system.disk import free_bytes
from store.tables.jobs import Job
from worker.base.periodic import Periodic
from worker.base.trees import remove_tree
from worker.job.failure import DISK_FULL
from worker.sandbox.process import LOG, MADE

_LOG = structlog.get_logger(__name__)
_DISK_SECONDS = 1.0
_SIZES_SECONDS = 10.0
"""How often all directories are measured although the disk has room."""
_TELL_SECONDS = 15.0
_CHAIN_SECONDS = 5.0
_CHAIN_MOST = 2000
"""Entries chained in one transaction, which takes half a second: 400 a second in the long run."""
_BLOCK = 512
"""Bytes of a block in ``st_blocks``."""


@dataclass(frozen=True, order=True)
class Taken:
    """What a job has taken of the disk: bytes, and files with directories."""

    bytes: float = 0
    files: float = 0


def taken_by(directory: Path, most_files: int) -> Taken:
    """What a job's process has written; without its inputs, which lie in the cache too.

    Endless where it holds more than ``most_files``, or goes deeper than paths can: a process that does so means harm.
    """
    total = files = 0
    try:
        for size in _sizes(directory):
            total, files = total + size, files + 1
            if files > most_files:
                return Taken(float("inf"), files)
    except FileNotFoundError:  # it goes away meanwhile
        return Taken(total, files)
    except OSError:
        return Taken(float("inf"), float("inf"))
    return Taken(total, files)


def _sizes(directory: Path) -> Iterator[int]:
    yield from _removed_and_open(directory / MADE)
    left = [directory / MADE]
    if (log := directory / LOG).is_file():
        yield log.lstat().st_blocks * _BLOCK
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                yield found.st_blocks * _BLOCK
                if stat.S_ISDIR(found.st_mode):
                    left.append(Path(entry.path))


def _removed_and_open(directory: Path) -> Iterator[int]:
    """The sizes of files that processes of a job have removed and hold open, which take room all the same.

    A process is the job's if it has a root of its own in which the directory lies; where none is granted, nothing is found.
    """
    here, made, seen = Path("/").stat(), directory.stat(), set[int]()
    for process in Path("/proc").glob("[0-9]*"):
        root = process / "root"
        with suppress(OSError):  # it has ended, or belongs to somebody else
            if os.path.samestat(root.stat(), here) or not os.path.samestat(Path(f"{root}{directory}").stat(), made):
                continue
            for held in (process / "fd").iterdir():
                with suppress(OSError):
                    found = held.stat()
                    if not found.st_nlink and found.st_dev == made.st_dev and found.st_ino not in seen:
                        seen.add(found.st_ino)
                        yield found.st_blocks * _BLOCK


class DiskWatch(Periodic):
    """Ends the job that has taken most of the disk when the disk is almost full, and one that takes more than it may.

    Its process learns from the database that the job is over, and removes the directory with itself.
    """

    def __init__(self, sessions: Sessions, settings: Settings) -> None:
        super().__init__("disk_watch", _DISK_SECONDS)
        self._sessions, self._settings = sessions, settings
        self._measured_at = float("-inf")

    def once(self) -> None:
        """Look at the disk, and every now and then at the directories."""
        is_full = free_bytes(self._settings.var_dir) < self._settings.fetch.keep_free_bytes
        if not is_full and time.monotonic() - self._measured_at < _SIZES_SECONDS:
            return
        self._measured_at = time.monotonic()
        most = Taken(self._settings.job_disk_bytes or float("inf"), self._settings.job_disk_files)
        sizes = {path: taken_by(path, self._settings.job_disk_files) for path in self._directories()}
        for path, taken in sizes.items():
            if taken.bytes > most.bytes or taken.files > most.files:
                self._end(path, "the job wrote more to the worker's disk than the operator lets one", retryable=False)
        if is_full:
            for path in sorted(sizes, key=lambda path: sizes[path], reverse=True):
                if self._end(
                    path, "the worker's disk was almost full, and this job had taken most of it", retryable=True
                ):
                    return

    def _directories(self) -> Sequence[Path]:
        """The directories of jobs at work; what waits for its job's next turn has none of its process's."""
        root = self._settings.work_dir
        return [path for path in root.iterdir() if (path / LOG).is_file()] if root.is_dir() else []

    def _end(self, directory: Path, message: str, *, retryable: bool) -> bool:
        """Fail the job of a directory, unless it waits for its turn; whether the directory is about to go."""
        job_id = directory.name.partition(".")[0]
        error = {
            "code": DISK_FULL,
            "message": f"{message}; retry when the operator has made room",
            "retryable": retryable,
        }
        try:
            with session_scope(self._sessions) as session:
                job = session.get(Job, job_id)
                if job is None or job.state not in ACTIVE:
                    return job is None or job.state in TERMINAL
                finish_failed(session, job_id, job.fence, error)
        except (LeaseLostError, NoResultFound):
            return True
        except SQLAlchemyError:  # perhaps since the database lies on the same disk: then it has room the next time
            remove_tree(directory / MADE)
            raise
        _LOG.error("job_took_the_disk", job_id=job_id, reason=message)
        return True


class SuccessWatch(Periodic):
    """Writes when the other threads last did their work without an error, so that a metric can tell of one that does not."""

    def __init__(self, sessions: Sessions, worker: str, watched: Sequence[Periodic]) -> None:
        super().__init__("success_watch", _TELL_SECONDS)
        self._sessions, self._worker, self._watched = sessions, worker, watched

    def once(self) -> None:
        """Write it."""
        times = {one.name: one.succeeded_at for one in self._watched if one.succeeded_at is not None}
        with session_scope(self._sessions) as session:
            note_successes(session, self._worker, times)


class AuditChain(Periodic):
    """Chains the entries of the audit log, and logs the head, so that a copy of it is outside of the database."""

    def __init__(self, sessions: Sessions, _: Settings) -> None:
        super().__init__("audit_chain", _CHAIN_SECONDS)
        self._sessions = sessions

    def once(self) -> None:
        """Chain what waits."""
        with session_scope(self._sessions) as session:
            head = chain(session, _CHAIN_MOST)
        if head is not None:
            _LOG.info("audit_chained", head=head)

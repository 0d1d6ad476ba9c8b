"""Remove files without a row, left by a process that died while writing or between a commit and the next step."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import structlog

from store.repositories import retention
from store.repositories.revision import database_identity, database_mark
from store.session import Sessions, session_scope
from store.storage.storage import Storage, job_folder, upload_folder
from worker.base.trees import remove_tree

_LOG = structlog.get_logger(__name__)
UNFINISHED_SECONDS = 7200.0
"""After this long without a write, the writer of a file counts as dead; it may be silent for half a minute at most, and the
clock may jump by an hour."""


def remove_orphans(sessions: Sessions, storage: Storage, seconds: float) -> int:
    """Remove folders of deleted jobs and uploads, and files that no job names, if nothing in a folder is younger than so many
    seconds: rows that are missing may come back with a restore."""
    # Listed before the rows are read, since a job's row is created before its folder.
    jobs = [folder.partition("/")[2] for folder in storage.folders("jobs")]
    uploads = [folder.partition("/")[2] for folder in storage.folders("uploads")]
    if not _are_ours(sessions, storage, jobs, uploads):
        _LOG.warning("storage_of_another_database", remedy="files without rows stay; see docs/operating.md")
        return 0
    removed = 0
    for batch in _batches(jobs):
        removed += _orphans_of_jobs(sessions, storage, batch, seconds)
    for batch in _batches(uploads):
        removed += _orphaned_uploads(sessions, storage, batch, seconds)
    return removed


_BEHIND = "behind "
"""Begins the note of a storage whose database was found to be older than its files; an operator removes the note."""


def _are_ours(sessions: Sessions, storage: Storage, jobs: Sequence[str], uploads: Sequence[str]) -> bool:
    """Whether the files belong to this database, and it is not older than they are, as after a restore; noted for the next
    time."""
    noted = storage.owner()  # read before the database is, which therefore is not behind what another janitor noted
    with session_scope(sessions) as session:
        database, mark = database_identity(session), database_mark(session)
        is_known = not (jobs or uploads) or bool(
            retention.known_jobs(session, jobs) or retention.known_uploads(session, uploads)
        )
    if noted is None:
        if is_known:
            storage.set_owner(f"{database}\n{mark.counted} {mark.transactions}")
        return is_known
    owner, _, before = noted.partition("\n")
    if owner != database:
        return False
    if any(now < then for now, then in zip(mark, map(int, before.split()), strict=False)):
        storage.set_owner(_BEHIND + noted)
        return False
    storage.set_owner(f"{database}\n{mark.counted} {mark.transactions}")
    return True


def _orphans_of_jobs(sessions: Sessions, storage: Storage, ids: Sequence[str], seconds: float) -> int:
    old: list[tuple[str, str]] = []
    at_rest = set()
    for job_id in ids:
        with _passed_over(job_folder(job_id)):
            held, is_at_rest = _old_contents(storage, job_folder(job_id), seconds)
            old += [(job_id, sha256) for sha256 in held]
            at_rest |= {job_id} if is_at_rest else set()
    with session_scope(sessions) as session:
        known = retention.known_jobs(session, ids)
        named = retention.named_contents(session, ids)
    gone = _deleted(storage, [job_folder(job_id) for job_id in ids if job_id not in known and job_id in at_rest])
    strays = [content for content in old if known.get(content[0]) is False and content not in named]
    return gone + sum(_remove_stray(sessions, storage, job_id, sha256) for job_id, sha256 in strays)


def _remove_stray(sessions: Sessions, storage: Storage, job_id: str, sha256: str) -> bool:
    """Remove a file that its job does not name, unless a worker holds the job."""
    with session_scope(sessions) as session:
        is_stray = retention.lock_idle_job(session, job_id) and (
            (job_id, sha256) not in retention.named_contents(session, [job_id])
        )
        if is_stray:
            storage.delete_content(job_folder(job_id), sha256)
    return is_stray


def _orphaned_uploads(sessions: Sessions, storage: Storage, ids: Sequence[str], seconds: float) -> int:
    with session_scope(sessions) as session:
        unknown = set(ids) - retention.known_uploads(session, ids)
    # The file of an upload exists briefly before its row.
    gone = []
    for folder in map(upload_folder, unknown):
        with _passed_over(folder):
            held, is_at_rest = _old_contents(storage, folder, seconds)
            gone += [folder] if held and is_at_rest else []
    return _deleted(storage, gone)


def _deleted(storage: Storage, folders: Sequence[str]) -> int:
    """Delete folders, and return how many could be."""
    deleted = 0
    for folder in folders:
        with _passed_over(folder):
            storage.delete(folder)
            deleted += 1
    return deleted


@contextmanager
def _passed_over(folder: str) -> Iterator[None]:
    """Log what the disk refuses of one folder, so that the others get their turn."""
    try:
        yield
    except OSError as error:
        _LOG.warning("orphan_not_removed", folder=folder, reason=str(error))


def _old_contents(storage: Storage, folder: str, seconds: float) -> tuple[list[str], bool]:
    """The contents of a folder that are older than so many seconds, and whether all of them are."""
    old = storage.contents(folder, older_than=seconds)
    return old, len(old) == len(storage.contents(folder, older_than=float("-inf")))


def remove_workspaces(sessions: Sessions, root: Path) -> int:
    """Remove the directories of ended jobs whose workers were killed.

    A waiting job may still be in its worker's memory, with its directory; the worker that claims it next removes the rest.
    """
    # Listed before the rows are read, since a job is claimed before its directory is created.
    directories = [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    with session_scope(sessions) as session:
        unended = retention.unended_jobs(session, {_job_of(path) for path in directories})
    over = [path for path in directories if _job_of(path) not in unended]
    for path in over:
        if not remove_tree(path):
            _LOG.warning("workspace_not_removed", directory=path.name)
    return len(over)


def _job_of(directory: Path) -> str:
    return directory.name.partition(".")[0]


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + retention.BATCH] for start in range(0, len(ids), retention.BATCH))

"""Removes expired and orphaned data: ``python -m worker.janitor``, and periodically in every worker.

Rows are deleted first, in transactions; their files follow after the commit. A process that dies in between leaves files
without rows. The next run removes them, together with half-written files, the directories of killed workers, and old cached
content. All of it may run repeatedly and concurrently, and never touches what a live job needs.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TypeVar

import structlog
from sqlalchemy.orm import Session

from store.errors import StoreError
from store.logs import configure_logs
from store.repositories import retention
from store.session import Sessions, open_sessions, session_scope
from store.settings import Settings
from store.storage.storage import Storage, job_folder, open_storage, upload_folder
from worker.base.periodic import Periodic
from worker.cleaning.orphans import UNFINISHED_SECONDS, remove_orphans, remove_workspaces
from worker.fetching.cache import ContentCache
from worker.sandbox.workspace import remove_unlocked

_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Cleaned:
    """How much was removed."""

    jobs: int = 0
    job_files: int = 0
    """Jobs that stay but whose files were removed."""
    job_events: int = 0
    """Jobs whose events were removed."""
    uploads: int = 0
    audit: int = 0
    """Entries of the audit log."""
    orphans: int = 0
    """Folders and files without a row."""
    unfinished: int = 0
    workspaces: int = 0
    cache_bytes: int = 0
    failed: int = 0
    """Kinds of the above that could not all be removed; the log says why."""


def clean(sessions: Sessions, settings: Settings, storage: Storage) -> Cleaned:
    """Remove expired data, orphaned data, and cached content beyond the limit. What fails is logged, and the rest goes on."""
    retain = settings.retain
    steps: dict[str, Callable[[], int]] = {
        "jobs": lambda: _with_files(
            _in_turns(sessions, retain.job_days, retention.remove_old_jobs), storage, job_folder
        ),
        # A job that had files has succeeded, and gets no new ones.
        "job_files": lambda: _with_files(
            _in_turns(sessions, retain.artifact_days, retention.forget_old_artifacts), storage, job_folder
        ),
        "job_events": lambda: sum(_in_turns(sessions, retain.event_days, retention.forget_old_events)),
        "uploads": lambda: _with_files(
            _in_turns(sessions, retain.upload_days, retention.remove_old_uploads), storage, upload_folder
        ),
        "audit": lambda: sum(_in_turns(sessions, retain.audit_days, retention.forget_old_audit)),
        "orphans": lambda: remove_orphans(sessions, storage, retain.orphan_days * 86_400),
        "unfinished": lambda: (
            storage.delete_unfinished(older_than=UNFINISHED_SECONDS) + remove_unlocked(settings.spool_dir)
        ),
        "workspaces": lambda: remove_workspaces(sessions, settings.work_dir),
        "cache_bytes": lambda: ContentCache(settings.cache_dir).trim(
            settings.cache_max_bytes, unfinished_seconds=UNFINISHED_SECONDS
        ),
    }
    amounts, failed = {}, 0
    for name, step in steps.items():
        try:
            amounts[name] = step()
        except (OSError, StoreError) as error:
            failed += 1
            _LOG.warning("not_cleaned", what=name, error=type(error).__name__, reason=str(error))
    return Cleaned(**amounts, failed=failed)


class NotCleanedError(StoreError):
    """Something that was to be removed could not be."""


class Janitor(Periodic):
    """A thread that cleans when it starts and then periodically until it is stopped."""

    def __init__(self, sessions: Sessions, settings: Settings) -> None:
        super().__init__("janitor", settings.clean_seconds, begins_at_once=True)
        self._sessions = sessions
        self._settings = settings

    def once(self) -> None:
        """Clean."""
        cleaned = clean(self._sessions, self._settings, open_storage(self._settings))
        _tell(cleaned)
        if cleaned.failed:
            raise NotCleanedError(f"{cleaned.failed} of the steps failed; the log says why")


def _tell(cleaned: Cleaned) -> None:
    amounts = {name: amount for name, amount in asdict(cleaned).items() if amount}
    if amounts:
        _LOG.info("cleaned", **amounts)


def main() -> int:
    """Clean up once, and print what was removed."""
    configure_logs(always_json=True)
    settings = Settings.from_environment()
    with open_sessions(settings) as sessions:
        cleaned = clean(sessions, settings, open_storage(settings))
    sys.stdout.write("".join(f"{name}: {amount}\n" for name, amount in asdict(cleaned).items()))
    return 1 if cleaned.failed else 0


Removed = TypeVar("Removed", int, list[str])


def _with_files(ids: Iterator[list[str]], storage: Storage, folder_of: Callable[[str], str]) -> int:
    """Remove the files of what was removed, batch by batch, and return how many of them there were."""
    removed = 0
    for batch in ids:
        for one in batch:
            storage.delete(folder_of(one))
        removed += len(batch)
    return removed


def _in_turns(
    sessions: Sessions, days: float | None, remove: Callable[[Session, timedelta], Removed]
) -> Iterator[Removed]:
    """Yield what each transaction removed, until one removes nothing or another process is cleaning."""
    if days is None:
        return
    while True:
        with session_scope(sessions) as session:
            removed = remove(session, timedelta(days=days)) if retention.take_turn(session) else None
        if not removed:
            return
        yield removed


if __name__ == "__main__":
    sys.exit(main())

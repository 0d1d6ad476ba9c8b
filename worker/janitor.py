"""Removes expired and orphaned data: ``python -m worker.janitor``, and periodically in every worker.

Rows are deleted first, in transactions; their files follow after the commit. A process that dies in between leaves files
without rows. The next run removes them, together with half-written files, the directories of killed workers, and old cached
content. All of it may run repeatedly and concurrently, and never touches what a live job needs.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

import structlog

from store.errors import StoreError
from store.session import Sessions, make_engine, make_sessions
from store.settings import Settings
from store.storage.storage import Storage, open_storage, remove_old
from worker.base.logs import configure_logs
from worker.base.periodic import Periodic
from worker.cleaning.orphans import UNFINISHED_SECONDS, remove_orphans, remove_workspaces
from worker.cleaning.retention import (
    forget_old_audit,
    forget_old_events,
    remove_old_artifacts,
    remove_old_jobs,
    remove_old_uploads,
)
from worker.fetching.cache import ContentCache

_LOG = structlog.get_logger(__name__)
_SENT_WITHIN_SECONDS = 86_400.0
"""A result that is delivered lies on this machine until it has arrived; after a day, who sent it is dead."""


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
    steps: dict[str, Callable[[], int]] = {
        "jobs": lambda: remove_old_jobs(sessions, settings, storage),
        "job_files": lambda: remove_old_artifacts(sessions, settings, storage),
        "job_events": lambda: forget_old_events(sessions, settings),
        "uploads": lambda: remove_old_uploads(sessions, settings, storage),
        "audit": lambda: forget_old_audit(sessions, settings),
        "orphans": lambda: remove_orphans(sessions, storage),
        "unfinished": lambda: (
            storage.delete_unfinished(older_than=UNFINISHED_SECONDS)
            + remove_old(settings.spool_dir, _SENT_WITHIN_SECONDS)
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


class Janitor(Periodic):
    """A thread that cleans when it starts and then periodically until it is stopped."""

    def __init__(self, sessions: Sessions, settings: Settings) -> None:
        super().__init__("janitor", settings.clean_seconds, begins_at_once=True)
        self._sessions = sessions
        self._settings = settings

    def once(self) -> None:
        """Clean."""
        _tell(clean(self._sessions, self._settings, open_storage(self._settings)))


def _tell(cleaned: Cleaned) -> None:
    amounts = {name: amount for name, amount in asdict(cleaned).items() if amount}
    if amounts:
        _LOG.info("cleaned", **amounts)


def main() -> int:
    """Clean up once, and print what was removed."""
    configure_logs()
    settings = Settings.from_environment()
    engine = make_engine(settings)
    try:
        cleaned = clean(make_sessions(engine), settings, open_storage(settings))
    finally:
        engine.dispose()
    sys.stdout.write("".join(f"{name}: {amount}\n" for name, amount in asdict(cleaned).items()))
    return 1 if cleaned.failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""What a worker process works with: settings, database, storage; and the jobs that it takes."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from store.repositories.leases import claim_next
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.settings import Settings
from store.storage import LocalStorage, Storage
from store.tables.jobs import Job


@dataclass(frozen=True)
class WorkerContext:
    """The tools of a worker process."""

    settings: Settings
    sessions: Sessions
    storage: Storage


@contextmanager
def open_context(settings: Settings) -> Iterator[WorkerContext]:
    """A context whose connections are closed at the end."""
    engine = make_engine(settings)
    try:
        yield WorkerContext(settings, make_sessions(engine), LocalStorage(settings.storage_dir))
    finally:
        engine.dispose()


def claim_job(context: WorkerContext) -> Job | None:
    """The next job, now this process's own, or None where there is nothing to do."""
    worker = f"{socket.gethostname()}:{os.getpid()}"
    with session_scope(context.sessions) as session:
        return claim_next(session, worker, context.settings.lease_seconds)

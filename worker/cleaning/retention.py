"""Remove what is older than the retention settings allow: the rows first, and their files after the commit."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeVar

from sqlalchemy.orm import Session

from store.repositories import retention
from store.session import Sessions, session_scope
from store.settings import Settings
from store.storage.storage import Storage, job_folder, upload_folder

_SENT_KEPT = timedelta(days=1)
"""How long a settled wake-up message is kept for debugging."""
Removed = TypeVar("Removed", int, list[str])


def remove_old_jobs(sessions: Sessions, settings: Settings, storage: Storage) -> int:
    """Remove jobs with everything that belongs to them, and return their number."""
    removed = 0
    for ids in _in_turns(sessions, settings.retain.job_days, retention.remove_old_jobs):
        for job_id in ids:
            storage.delete(job_folder(job_id))
        removed += len(ids)
    return removed


def remove_old_artifacts(sessions: Sessions, settings: Settings, storage: Storage) -> int:
    """Remove the files of jobs but not the jobs, and return the number of jobs."""
    removed = 0
    for ids in _in_turns(sessions, settings.retain.artifact_days, retention.forget_old_artifacts):
        for job_id in ids:
            storage.delete(job_folder(job_id))  # a job that had files has succeeded, and gets no new ones
        removed += len(ids)
    return removed


def forget_old_events(sessions: Sessions, settings: Settings) -> int:
    """Remove sent wake-up messages and the events of jobs but not the jobs, and return the number of jobs."""
    with session_scope(sessions) as session:
        if retention.take_turn(session):
            retention.forget_sent_messages(session, _SENT_KEPT)
    return sum(_in_turns(sessions, settings.retain.event_days, retention.forget_old_events))


def remove_old_uploads(sessions: Sessions, settings: Settings, storage: Storage) -> int:
    """Remove uploads that no job names, and return their number."""
    removed = 0
    for ids in _in_turns(sessions, settings.retain.upload_days, retention.remove_old_uploads):
        for upload_id in ids:
            storage.delete(upload_folder(upload_id))
        removed += len(ids)
    return removed


def forget_old_audit(sessions: Sessions, settings: Settings) -> int:
    """Remove entries of the audit log, and return their number."""
    return sum(_in_turns(sessions, settings.retain.audit_days, retention.forget_old_audit))


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

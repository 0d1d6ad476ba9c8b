"""Find and remove expired data, one batch at a time, each in the caller's transaction.

Jobs are locked first, and locked ones are skipped, so that a job that is being retried or claimed keeps what it needs.
Nothing here touches a job that has not ended.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta

from sqlalchemy import delete, exists, func, literal, select, union_all
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from axformer.wire.webhooks import DeliveryState
from store import locks
from store.repositories.events import record_event
from store.repositories.steering import delete_job
from store.states import ACTIVE, TERMINAL
from store.tables.audit import AuditEntry
from store.tables.files import Artifact, Upload
from store.tables.jobs import REFERENCES, Event, Job
from store.tables.webhooks import Delivery

BATCH = 100
"""Jobs or uploads per transaction, so that locks are held for well under a second."""
_ENTRIES = 10_000
"""Entries of the audit log per transaction; nothing waits for their locks."""


def take_turn(session: Session) -> bool:
    """Try to lock the cleaning until this transaction ends; False if another transaction has the lock."""
    return bool(session.scalar(select(func.pg_try_advisory_xact_lock(locks.CLEANING))))


def remove_old_jobs(session: Session, age: timedelta) -> list[str]:
    """Remove old ended jobs with all their rows, and return their ids; the caller removes the files after the commit."""
    gone = [job.id for job in _lock_ended(session, age)]
    for job_id in gone:
        delete_job(session, job_id)
    return gone


def forget_old_artifacts(session: Session, age: timedelta) -> list[str]:
    """Remove the file rows of old ended jobs, and return the jobs' ids; the caller removes the files after the commit."""
    has_files = exists().where(Artifact.job_id == Job.id)
    jobs = _lock_ended(session, age, has_files)
    for job in jobs:
        gone = session.scalars(delete(Artifact).where(Artifact.job_id == job.id).returning(Artifact.name)).all()
        reason = f"files are kept for {age / timedelta(days=1):g} days after a job's end"
        record_event(session, job, "job.artifacts_removed", {"artifacts": sorted(gone), "reason": reason})
    return [job.id for job in jobs]


def forget_old_events(session: Session, age: timedelta) -> int:
    """Remove events and messages of old ended jobs, and return the number of jobs."""
    old_message = exists().where(Delivery.job_id == Job.id, Delivery.state != DeliveryState.PENDING)
    ids = [job.id for job in _lock_ended(session, age, exists().where(Event.job_id == Job.id) | old_message)]
    session.execute(delete(Event).where(Event.job_id.in_(ids)))
    settled = (Delivery.job_id.in_(ids), Delivery.state != DeliveryState.PENDING)
    session.execute(delete(Delivery).where(*settled))
    return len(ids)


def remove_old_uploads(session: Session, age: timedelta) -> list[str]:
    """Remove old uploads that no job names, and return their ids; the caller removes their content after the commit."""
    old = select(Upload.id).where(Upload.created_at < func.now() - age, _is_unnamed())
    query = old.order_by(Upload.created_at).limit(BATCH).with_for_update(skip_locked=True)
    locked = session.scalars(query).all()
    # Checked again under the lock, since a job may have named them before it was taken.
    gone = delete(Upload).where(Upload.id.in_(locked), _is_unnamed()).returning(Upload.id)
    return list(session.scalars(gone))


def forget_old_audit(session: Session, age: timedelta) -> int:
    """Remove the old entries at the beginning of the audit log's chain, never its last, and return their number."""
    young = select(func.min(AuditEntry.link)).where(AuditEntry.created_at >= func.now() - age)
    first_kept = func.coalesce(young.scalar_subquery(), select(func.max(AuditEntry.link)).scalar_subquery())
    old = select(AuditEntry.id).where(AuditEntry.link < first_kept).order_by(AuditEntry.link).limit(_ENTRIES)
    return len(session.scalars(delete(AuditEntry).where(AuditEntry.id.in_(old)).returning(AuditEntry.id)).all())


def known_jobs(session: Session, ids: Collection[str]) -> dict[str, bool]:
    """The jobs among these that exist, each with whether a worker may be using its files."""
    found = session.execute(select(Job.id, Job.state).where(Job.id.in_(ids)))
    return {job_id: state in ACTIVE for job_id, state in found}


def unended_jobs(session: Session, ids: Collection[str]) -> set[str]:
    """The jobs among these that exist and have not ended."""
    return set(session.scalars(select(Job.id).where(Job.id.in_(ids), Job.state.not_in(TERMINAL))))


def known_uploads(session: Session, ids: Collection[str]) -> set[str]:
    """The uploads among these that exist."""
    return set(session.scalars(select(Upload.id).where(Upload.id.in_(ids))))


def named_contents(session: Session, ids: Collection[str]) -> set[tuple[str, str]]:
    """Job id and hash of every file of these jobs."""
    rows = session.execute(select(Artifact.job_id, Artifact.sha256).where(Artifact.job_id.in_(ids)))
    return {(job_id, sha256) for job_id, sha256 in rows}


def lock_idle_job(session: Session, job_id: str) -> bool:
    """Lock a job so that it cannot be claimed until the transaction ends. False if it is held, locked or gone."""
    query = select(Job.id).where(Job.id == job_id, Job.state.not_in(ACTIVE)).with_for_update(skip_locked=True)
    return session.scalars(query).one_or_none() is not None


def _lock_ended(session: Session, age: timedelta, *conditions: ColumnElement[bool]) -> Sequence[Job]:
    query = select(Job).where(Job.state.in_(TERMINAL), Job.finished_at < func.now() - age, *conditions)
    query = query.order_by(Job.finished_at).limit(BATCH).with_for_update(skip_locked=True, key_share=True)
    return session.scalars(query.execution_options(populate_existing=True)).all()


def _is_unnamed() -> ColumnElement[bool]:
    named = union_all(*(select(uri).where(uri.like("upload:%")) for uri in REFERENCES))
    return (literal("upload:") + Upload.id).not_in(named)

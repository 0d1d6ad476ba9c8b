"""What is past its time: found and removed a batch at a time, each in the caller's transaction.

Jobs are locked first, and those that are locked already are left for another time, so that a job that is retried or claimed
at this moment keeps what it needs. Nothing here touches a job that has not ended.
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
from store.tables.artifacts import Artifact
from store.tables.audit import AuditEntry
from store.tables.events import Event
from store.tables.jobs import REFERENCES, Job
from store.tables.outbox import OutboxMessage
from store.tables.uploads import Upload
from store.tables.webhooks import Delivery

BATCH = 100
"""Jobs or uploads of one transaction: locks are held for well under a second."""
_ENTRIES = 10_000
"""Entries of the audit log of one transaction; nobody waits for them."""


def take_turn(session: Session) -> bool:
    """Whether nobody else is removing things now; nobody else is, then, until this transaction ends."""
    return bool(session.scalar(select(func.pg_try_advisory_xact_lock(locks.CLEANING))))


def remove_old_jobs(session: Session, age: timedelta) -> list[str]:
    """Remove jobs that ended so long ago with all their rows. Their ids; the caller removes the files after the commit."""
    gone = [job.id for job in _lock_ended(session, age)]
    for job_id in gone:
        delete_job(session, job_id)
    return gone


def forget_old_artifacts(session: Session, age: timedelta) -> list[str]:
    """Forget the files of jobs that ended so long ago. Ids of the jobs; the caller removes the files after the commit."""
    has_files = exists().where(Artifact.job_id == Job.id)
    jobs = _lock_ended(session, age, has_files)
    for job in jobs:
        gone = session.scalars(delete(Artifact).where(Artifact.job_id == job.id).returning(Artifact.name)).all()
        reason = f"files are kept for {age / timedelta(days=1):g} days after a job's end"
        record_event(session, job, "job.artifacts_removed", {"artifacts": sorted(gone), "reason": reason})
    return [job.id for job in jobs]


def forget_old_events(session: Session, age: timedelta) -> int:
    """Forget events and messages of jobs that ended so long ago. How many jobs that were."""
    old_message = exists().where(Delivery.job_id == Job.id, Delivery.state != DeliveryState.PENDING)
    ids = [job.id for job in _lock_ended(session, age, exists().where(Event.job_id == Job.id) | old_message)]
    session.execute(delete(Event).where(Event.job_id.in_(ids)))
    settled = (Delivery.job_id.in_(ids), Delivery.state != DeliveryState.PENDING)
    session.execute(delete(Delivery).where(*settled))
    return len(ids)


def remove_old_uploads(session: Session, age: timedelta) -> list[str]:
    """Remove uploads that were sent so long ago and that no job names. Their ids; their content is the caller's to remove."""
    old = select(Upload.id).where(Upload.created_at < func.now() - age, _is_unnamed())
    query = old.order_by(Upload.created_at).limit(BATCH).with_for_update(skip_locked=True)
    locked = session.scalars(query).all()
    # Looked at again now that nobody can name them in a job: it may have been done before they were locked.
    gone = delete(Upload).where(Upload.id.in_(locked), _is_unnamed()).returning(Upload.id)
    return list(session.scalars(gone))


def forget_sent_messages(session: Session, age: timedelta) -> None:
    """Forget wake-up messages that were given to the broker so long ago."""
    session.execute(delete(OutboxMessage).where(OutboxMessage.sent_at < func.now() - age))


def forget_old_audit(session: Session, age: timedelta) -> int:
    """Forget entries of the audit log that were written so long ago. How many."""
    old = select(AuditEntry.id).where(AuditEntry.created_at < func.now() - age).order_by(AuditEntry.id).limit(_ENTRIES)
    return len(session.scalars(delete(AuditEntry).where(AuditEntry.id.in_(old)).returning(AuditEntry.id)).all())


def known_jobs(session: Session, ids: Collection[str]) -> dict[str, bool]:
    """Those of these jobs that there are, each with whether a worker may be using its files."""
    found = session.execute(select(Job.id, Job.state).where(Job.id.in_(ids)))
    return {job_id: state in ACTIVE for job_id, state in found}


def unended_jobs(session: Session, ids: Collection[str]) -> set[str]:
    """Those of these jobs that are there and have not ended."""
    return set(session.scalars(select(Job.id).where(Job.id.in_(ids), Job.state.not_in(TERMINAL))))


def known_uploads(session: Session, ids: Collection[str]) -> set[str]:
    """Those of these uploads that there are."""
    return set(session.scalars(select(Upload.id).where(Upload.id.in_(ids))))


def named_contents(session: Session, ids: Collection[str]) -> set[tuple[str, str]]:
    """Job and hash of every file that these jobs have."""
    rows = session.execute(select(Artifact.job_id, Artifact.sha256).where(Artifact.job_id.in_(ids)))
    return {(job_id, sha256) for job_id, sha256 in rows}


def lock_idle_job(session: Session, job_id: str) -> bool:
    """Keep a job from being worked on until the transaction ends. False where it is already, or is locked, or gone."""
    query = select(Job.id).where(Job.id == job_id, Job.state.not_in(ACTIVE)).with_for_update(skip_locked=True)
    return session.scalars(query).one_or_none() is not None


def _lock_ended(session: Session, age: timedelta, *conditions: ColumnElement[bool]) -> Sequence[Job]:
    query = select(Job).where(Job.state.in_(TERMINAL), Job.finished_at < func.now() - age, *conditions)
    query = query.order_by(Job.finished_at).limit(BATCH).with_for_update(skip_locked=True, key_share=True)
    return session.scalars(query.execution_options(populate_existing=True)).all()


def _is_unnamed() -> ColumnElement[bool]:
    references = [column["uri"].astext for column in REFERENCES]
    named = union_all(*(select(uri).where(uri.like("upload:%")) for uri in references))
    return (literal("upload:") + Upload.id).not_in(named)

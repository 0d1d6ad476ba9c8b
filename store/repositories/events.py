"""Events of a job. A writer holds the job's row lock, which keeps the numbers without gaps."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.page import Page, page_of
from store.repositories.deliveries import add_delivery
from store.tables.jobs import Event, Job


def record_event(session: Session, job: Job, type: str, data: Mapping[str, Any] | None = None) -> Event:
    """Write the job's next event, and its message if the job has a webhook.

    The job must be new or locked in this transaction (``moves.lock_job``).
    """
    job.event_count += 1
    event = Event(job_id=job.id, seq=job.event_count, type=type, data=dict(data or {}))
    session.add(event)
    session.flush()
    if job.webhook is not None:
        add_delivery(session, job, event)
    return event


def events_after(session: Session, job_id: str, *, after: int = 0, limit: int) -> Page[Event]:
    """The job's events with numbers above ``after``, oldest first."""
    query = select(Event).where(Event.job_id == job_id, Event.seq > after).order_by(Event.seq).limit(limit + 1)
    return page_of(session.scalars(query).all(), limit)

"""Messages to be sent to the broker."""

from collections.abc import Sequence

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from store.tables.workers import OutboxMessage


def add_message(session: Session, job_id: str) -> None:
    """Announce the waiting job when this transaction commits."""
    session.add(OutboxMessage(job_id=job_id))


def unsent_messages(session: Session, limit: int) -> Sequence[OutboxMessage]:
    """The oldest unsent messages. They are not locked, so the sender holds no transaction open meanwhile."""
    query = select(OutboxMessage).where(OutboxMessage.sent_at.is_(None)).order_by(OutboxMessage.id).limit(limit)
    return session.scalars(query).all()


def mark_sent(session: Session, ids: Sequence[int]) -> None:
    """Record that these messages were sent to the broker; skip rows that another transaction has locked."""
    mine = select(OutboxMessage.id).where(OutboxMessage.id.in_(ids), OutboxMessage.sent_at.is_(None))
    free = mine.with_for_update(skip_locked=True).scalar_subquery()
    sent = update(OutboxMessage).where(OutboxMessage.id.in_(free)).values(sent_at=func.clock_timestamp())
    session.execute(sent, execution_options={"synchronize_session": False})

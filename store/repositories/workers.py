"""The registered workers, and which of them are alive."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from axformer.wire.devices import Device
from store.tables.workers import Worker

FORGOTTEN_AFTER = timedelta(days=1)
"""Silence after which a worker's row is removed; a restarted worker has another name."""


def note_worker(
    session: Session, name: str, process: str, queue: str, device: Device, machine: str | None = None
) -> None:
    """Register a worker that looks for a job.

    Workers that have been silent for a day are removed, and any older worker with the same process name.
    """
    now = func.clock_timestamp()
    said = {"process": process, "queue": queue, "device": device, "machine": machine, "last_seen": now}
    made = insert(Worker).values(name=name, **said).on_conflict_do_update(index_elements=["name"], set_=said)
    session.execute(made)
    is_old = or_(Worker.last_seen < now - FORGOTTEN_AFTER, Worker.process == process)
    session.execute(delete(Worker).where(Worker.name != name, is_old))


def see_worker(session: Session, name: str) -> None:
    """Record that a worker is alive, if it has registered."""
    seen = update(Worker).where(Worker.name == name).values(last_seen=func.clock_timestamp())
    session.execute(seen, execution_options={"synchronize_session": False})


def see_process(session: Session, process: str) -> None:
    """Record that the worker of this process is alive, if it has registered."""
    seen = update(Worker).where(Worker.process == process).values(last_seen=func.clock_timestamp())
    session.execute(seen, execution_options={"synchronize_session": False})


def find_worker(session: Session, name: str) -> Worker | None:
    """The worker of this name; None until it has registered."""
    return session.get(Worker, name, populate_existing=True)


def living_workers(session: Session, within_seconds: float) -> Sequence[Worker]:
    """Workers that were seen within some seconds, by name."""
    since = func.clock_timestamp() - timedelta(seconds=within_seconds)
    return session.scalars(select(Worker).where(Worker.last_seen >= since).order_by(Worker.name)).all()

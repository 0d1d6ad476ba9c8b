"""The registered workers, which of them are alive, and the messages that are to be sent to them through the broker."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from axformer.wire.devices import Device, can_take
from store.states import ACTIVE, JobState
from store.tables.jobs import Job
from store.tables.workers import Worker

FORGOTTEN_AFTER = timedelta(days=1)
"""Silence after which a worker's row is removed; a restarted worker has another name."""


def note_worker(
    session: Session,
    name: str,
    process: str,
    queue: str,
    device: Device,
    machine: str | None = None,
    memory: int | None = None,
) -> None:
    """Register a worker that looks for a job.

    Workers that have been silent for a day are removed, and any older worker with the same process name.
    """
    now = func.clock_timestamp()
    said = {
        "process": process,
        "queue": queue,
        "device": device,
        "machine": machine,
        "memory": memory,
        "last_seen": now,
    }
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


def note_successes(session: Session, name: str, times: Mapping[str, float]) -> None:
    """Record when each of a worker's threads last did its work without an error, in seconds since 1970."""
    noted = update(Worker).where(Worker.name == name).values(succeeded_at=dict(times))
    session.execute(noted, execution_options={"synchronize_session": False})


def is_draining(session: Session, name: str) -> bool:
    """Whether the operator wants a worker to take no more jobs."""
    return bool(session.scalar(select(Worker.is_draining).where(Worker.name == name)))


def living_workers(session: Session, within_seconds: float) -> Sequence[Worker]:
    """Workers that were seen within some seconds, by name."""
    since = func.clock_timestamp() - timedelta(seconds=within_seconds)
    return session.scalars(select(Worker).where(Worker.last_seen >= since).order_by(Worker.name)).all()


def is_any_large_enough(session: Session, job: Job) -> bool:
    """Whether a worker that was seen within a day has the device and the memory that a job needs."""
    known = living_workers(session, FORGOTTEN_AFTER.total_seconds())
    return any(
        worker.memory is not None and can_take(worker.device, worker.memory, job.device, job.memory) for worker in known
    )


@dataclass(frozen=True)
class Held:
    """A job that a process holds, by the database's clock."""

    job_id: str
    fence: int
    worker: str
    cancelling_seconds: float | None
    """Seconds since its owner asked to cancel it; None if the owner has not."""
    is_pausing: bool
    """Whether its owner has paused it."""
    overdue_seconds: float
    """Seconds since its lease expired; negative while the lease is valid."""


def held_by(session: Session, workers: Collection[str]) -> Sequence[Held]:
    """The jobs that these workers hold, including expired ones that no other worker has claimed yet."""
    now = func.clock_timestamp()
    query = select(
        Job.id,
        Job.fence,
        Job.worker,
        func.extract("epoch", now - Job.cancel_requested_at),
        Job.state == JobState.PAUSING,
        func.extract("epoch", now - Job.lease_until),
    ).where(Job.worker.in_(workers), Job.state.in_(ACTIVE), Job.lease_until.is_not(None))
    return [
        Held(job_id, fence, str(worker), None if cancelling is None else float(cancelling), is_pausing, float(overdue))
        for job_id, fence, worker, cancelling, is_pausing, overdue in session.execute(query)
    ]

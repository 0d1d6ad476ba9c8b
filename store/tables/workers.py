"""Workers, as they last made themselves known. Which job one holds stands with the job."""

from datetime import datetime

from sqlalchemy import func
from sqlalchemy.orm import Mapped, mapped_column

from axformer.wire.devices import Device
from store.tables.base import Base, CreatedAt, text_enum


class Worker(Base):
    """One worker. It is alive as long as it was seen within a lease, whatever became of its process."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(primary_key=True)
    """Host and id of its main process."""
    process: Mapped[str]
    """The same of the process that runs its jobs, which is anew after each; what it holds has this as ``jobs.worker``."""
    queue: Mapped[str]
    """The broker's queue that it listens to."""
    device: Mapped[Device] = mapped_column(text_enum(Device, "device"))
    machine: Mapped[str | None]
    """Its machine, by the directory that holds the state of its jobs; workers that share the directory share the machine. Null
    for workers of earlier versions."""
    created_at: Mapped[CreatedAt]
    last_seen: Mapped[datetime] = mapped_column(server_default=func.now())
    """When it last looked for a job, renewed its lease, or found that there is nothing for it to do."""

"""Tables beside the queue: workers, messages to them, and turns.

A message commits with its job, so only existing jobs are announced and none is forgotten. A turn is how long a worker has held
a job: the end of a lease writes one, and the next claim adds it to the team's account (``teams.used_seconds``), so that the end
of a lease never waits for a row that others write.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Double, ForeignKey, Identity, func, text
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
    memory: Mapped[int | None] = mapped_column(BigInteger)
    """Bytes of its GPU, or of its machine if it works on the processor. Null if it has not said."""
    machine: Mapped[str | None]
    """Its machine, by the directory that holds the state of its jobs; workers that share the directory share the machine. Null
    for workers of earlier versions."""
    is_draining: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether the operator wants it to take no more jobs."""
    succeeded_at: Mapped[dict[str, Any] | None]
    """When each of its periodic threads last did its work without an error, by its name, in seconds since 1970."""
    created_at: Mapped[CreatedAt]
    last_seen: Mapped[datetime] = mapped_column(server_default=func.now())
    """When it last looked for a job, renewed its lease, or found that there is nothing for it to do."""


class TeamTurn(Base):
    """One ended or lost lease that is not in its team's account yet."""

    __tablename__ = "turns"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"))
    seconds: Mapped[float] = mapped_column(Double)
    ended_at: Mapped[datetime]

"""The queue as a team sees it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import with_config

from axformer.wire.base import Schema, WordOf
from axformer.wire.devices import DeviceWord
from axformer.wire.states import StateWord


class WaitsFor(StrEnum):
    """What keeps a job in the queue."""

    TURN = "turn"
    RUNNING_LIMIT = "running_limit"
    WORKER = "worker"


@with_config(Schema.model_config)
@dataclass(frozen=True, slots=True)
class AheadRead:  # no model, since a look at a long line shows thousands of them
    """How many jobs of one team go before a job."""

    team: str | None
    """Your team's name; null of any other team, which stay unnamed."""
    jobs: int


class PlaceRead(Schema):
    """Where a waiting job stands. All is null of a job that a worker has, except when it ends."""

    position: int | None
    """Its place, from 1, among the waiting jobs of all teams; a free worker takes the first that it can."""
    ahead: list[AheadRead] | None
    """The jobs with lower positions by their teams: yours first, then the others."""
    waits_for: Annotated[WaitsFor | str, WordOf(WaitsFor)] | None
    """``turn``; or ``running_limit``, your team's; or ``worker``, where no living one has the job's device."""
    reason: str | None
    """The same in words."""
    starts_in_seconds: float | None
    """Estimate of when a worker takes it; null where it cannot be estimated, or once it has begun."""
    ends_in_seconds: float | None
    """Estimate of when it ends; null where it cannot be estimated."""


class QueuedJobRead(PlaceRead):
    """One of the team's jobs that has not ended."""

    id: str
    name: str
    state: StateWord
    device: DeviceWord


class WorkersRead(Schema):
    """The living workers of one kind."""

    queue: str | None
    """The broker's queue that they listen to; null of those that have not said so."""
    device: DeviceWord
    alive: int
    """Seen within a lease: they looked for a job, worked on one, or found that there was none for them."""
    busy: int


class QueueRead(Schema):
    """Where the team's jobs stand."""

    data: list[QueuedJobRead]
    """Those that have not ended, running ones first, then in the order in which they will be taken."""
    counts: dict[StateWord, int]
    """The team's jobs by state, as they are listed."""
    queued_of_all_teams: int
    """Queued jobs of all teams that wait for a worker."""
    workers_alive: int
    workers_busy: int
    """Workers that hold a job now, of any team."""
    workers: list[WorkersRead]
    """The same by the queue that they listen to and their device."""
    eta_method: str
    """How the estimates were made."""
    as_of: datetime

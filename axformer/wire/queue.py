"""The queue as a team sees it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, with_config

from axformer.wire.base import Schema, WordOf
from axformer.wire.devices import DeviceWord
from axformer.wire.states import StateWord


class WaitsFor(StrEnum):
    """What a queued job waits for."""

    TURN = "turn"
    RUNNING_LIMIT = "running_limit"
    WORKER = "worker"


@with_config(Schema.model_config)
@dataclass(frozen=True, slots=True)
class AheadRead:  # no model, since a look at a long line shows thousands of them
    """The number of jobs of one team that are ahead of a job."""

    team: str | None
    """Your team's name; null for other teams, which stay anonymous."""
    jobs: int


class PlaceRead(Schema):
    """The place of a waiting job. For a job that a worker holds, everything except its end is null."""

    position: int | None
    """Position among the waiting jobs of all teams, from 1; a free worker takes the first that it can."""
    ahead: list[AheadRead] | None
    """Jobs with lower positions by team: yours first, then the others."""
    waits_for: Annotated[WaitsFor | str, WordOf(WaitsFor)] | None
    """``turn``; ``running_limit`` of your team; or ``worker``, if no living one has the job's device and memory."""
    reason: str | None
    """The reason in words."""
    starts_in_seconds: float | None
    """Estimated time until a worker takes it; null if unknown, or once it has begun."""
    ends_in_seconds: float | None
    """Estimated time until it ends; null if unknown."""


class QueuedJobRead(PlaceRead):
    """One of the team's jobs that has not ended."""

    id: str
    name: str
    state: StateWord
    device: DeviceWord


@with_config(Schema.model_config)
@dataclass(frozen=True, slots=True)
class WorkerRead:
    """A living worker."""

    name: str | None
    """Null for one that has not registered."""
    memory: int | None
    """Bytes of its GPU, or of its machine if it works on the processor; null if it has not said."""
    is_busy: bool
    """Whether it holds a job of any team."""
    job_id: str | None
    """The job, if it is your team's."""
    job_name: str | None
    since: datetime | None
    """Since when it holds that job, or another team's."""


class WorkersRead(Schema):
    """The living workers of one kind."""

    queue: str | None
    """The broker's queue that they listen to; null for workers that have not registered."""
    device: DeviceWord
    alive: int
    """Workers seen within a lease: they looked for a job, worked on one, or found none for them."""
    busy: int
    each: list[WorkerRead] = Field(default_factory=list)
    """The same one by one."""


class QueueRead(Schema):
    """The places of the team's jobs."""

    data: list[QueuedJobRead]
    """Unfinished jobs, running ones first, then in the order in which they will be taken."""
    counts: dict[StateWord, int]
    """The team's jobs by state, as they are listed."""
    queued_of_all_teams: int
    """Number of waiting jobs of all teams."""
    workers_alive: int
    workers_busy: int
    """Number of workers that hold a job of any team."""
    workers: list[WorkersRead]
    """Living workers by queue and device."""
    eta_method: str
    """How the estimates were made."""
    as_of: datetime

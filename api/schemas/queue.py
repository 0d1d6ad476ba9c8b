"""The queue as a team sees it."""

from datetime import datetime

from api.schemas.base import Schema
from store.states import JobState


class QueuedJobRead(Schema):
    """One of the team's jobs that has not ended. A search of orders stands here by its passes, while they have not ended."""

    id: str
    name: str
    state: JobState
    position: int | None
    """Queued jobs of all teams that come first, plus one; null once a worker has it."""
    starts_in_seconds: float | None
    """Estimate of when a worker takes it; null where it cannot be estimated, or once it has begun."""
    ends_in_seconds: float | None
    """Estimate of when it ends; null where it cannot be estimated."""


class QueueRead(Schema):
    """Where the team's jobs stand."""

    data: list[QueuedJobRead]
    """Those that have not ended, running ones first, then in the order in which they will be taken."""
    counts: dict[JobState, int]
    """The team's jobs by state, as they are listed."""
    queued_of_all_teams: int
    """Queued jobs of all teams that wait for a worker."""
    workers_busy: int
    """Workers that hold a job now, of any team. How many are idle is not known here."""
    eta_method: str
    """How the estimates were made."""
    as_of: datetime

"""Events of a job."""

from datetime import datetime
from typing import Any

from axformer.wire.base import Schema


class EventRead(Schema):
    """One event."""

    seq: int
    """Numbered from 1 without gaps; the ``id`` of the server-sent event."""
    type: str
    """``job.created``, ``job.<state>``, or a type of the worker's."""
    data: dict[str, Any]
    created_at: datetime

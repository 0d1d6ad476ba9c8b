"""What happened to a job."""

from datetime import datetime
from typing import Any

from axformer.wire.base import Schema


class EventRead(Schema):
    """One thing that happened."""

    seq: int
    """Numbered from 1 without gaps; the ``id`` of the server-sent event."""
    type: str
    """``job.created``, ``job.<state>``, or a word of the worker's own."""
    data: dict[str, Any]
    created_at: datetime

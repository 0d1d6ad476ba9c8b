"""Events of a job."""

from datetime import datetime
from typing import Any

from axformer.wire.base import Schema
from axformer.wire.states import StateWord
from axformer.wire.steps import Step

PROGRESS = "job.progress"
"""The type of the messages of a stream that are not stored."""


class EventRead(Schema):
    """One event."""

    seq: int
    """Numbered from 1 without gaps; the ``id`` of the server-sent event. For ``job.progress``, which only streams have,
    without an ``id``, the number of the event before it."""
    type: str
    """``job.created``, ``job.<state>``, a type of the worker's, or ``job.progress``."""
    data: dict[str, Any]
    created_at: datetime


class ProgressData(Schema):
    """The ``data`` of ``job.progress``: what a worker does with the job, and how far it is."""

    state: StateWord
    message: str
    """The same for people."""
    done: int | None = None
    """Trials done, while the job is ``running``."""
    known: int | None = None
    """Trials done and known to come."""
    seconds_left: float | None = None
    """Known trials left times the mean seconds of a trial so far; after the last trial, what is left of the step."""
    step: Step | None = None
    """What is done between two trials or after the last one, where that takes long."""

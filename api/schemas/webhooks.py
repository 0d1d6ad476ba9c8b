"""Webhooks: whom a job tells of its events, the secrets that sign the messages, and what became of each."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from api.schemas.base import Schema, Uri
from store.tables.webhooks import DeliveryState


class WebhookEvent(StrEnum):
    """What a webhook can be told of: a job was made, or has gone into another state."""

    CREATED = "job.created"
    QUEUED = "job.queued"
    FETCHING = "job.fetching"
    VALIDATING = "job.validating"
    RUNNING = "job.running"
    PACKAGING = "job.packaging"
    PAUSING = "job.pausing"
    PAUSED = "job.paused"
    CANCELLING = "job.cancelling"
    SUCCEEDED = "job.succeeded"
    FAILED = "job.failed"
    CANCELLED = "job.cancelled"


ENDS = (WebhookEvent.SUCCEEDED, WebhookEvent.FAILED, WebhookEvent.CANCELLED)


class Webhook(Schema):
    """Who is told of a job's events, by the standard-webhooks scheme (https://www.standardwebhooks.com)."""

    url: Uri
    """Where messages are posted: ``https://``, at a public address. It must answer with a status of 200 to 299."""
    events: list[WebhookEvent] = Field(default=list(ENDS), min_length=1)
    """Which events; by default the three ways in which a job can end."""


class WebhookSecretRead(Schema):
    """A secret of the team, without its text."""

    id: str
    created_at: datetime
    expires_at: datetime | None
    """When it signs no more; null for the newest."""


class WebhookSecretCreated(WebhookSecretRead):
    """A secret that was just made."""

    secret: str
    """Shown this once; the receiver verifies signatures with it."""


class WebhookSecretList(Schema):
    """The secrets that sign now, the newest first."""

    data: list[WebhookSecretRead]


class DeliveryRead(Schema):
    """One message of a job's webhook."""

    id: str
    """The ``webhook-id``, the same in every attempt."""
    seq: int
    """Number of the event."""
    type: str
    url: str
    """Where it goes; the query is not shown, since it may hold a token."""
    state: DeliveryState
    """``dead`` means that nobody tries any more."""
    attempts: int
    """Times it was sent since it was written or sent again by hand."""
    last_status: int | None
    """HTTP status of the last attempt; null where there was no answer."""
    last_error: str | None
    """Why the last attempt failed."""
    attempted_at: datetime | None
    next_at: datetime | None
    """When it is sent next, at the earliest; null where it is not."""
    created_at: datetime

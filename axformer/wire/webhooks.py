"""Webhooks: where a job sends its events, the secrets that sign the messages, and what became of each."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from axformer.wire.base import Schema, Uri, WordOf


class WebhookEvent(StrEnum):
    """What a webhook can be told of: a job was made, went into another state, or its files were put somewhere."""

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
    DELIVERED = "job.delivered"
    NOT_DELIVERED = "job.not_delivered"


ENDS = (WebhookEvent.SUCCEEDED, WebhookEvent.FAILED, WebhookEvent.CANCELLED)


class Webhook(Schema):
    """Receives a job's events, signed by the standard-webhooks scheme (https://www.standardwebhooks.com)."""

    url: Uri
    """Where messages are posted: ``https://``, at a public address. It must answer with a status of 200 to 299."""
    events: list[Annotated[WebhookEvent | str, WordOf(WebhookEvent)]] = Field(default=list(ENDS), min_length=1)
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


class DeliveryState(StrEnum):
    """Where a message stands."""

    PENDING = "pending"
    """It is going to be sent, or sent again."""
    DELIVERED = "delivered"
    """The receiver has taken it."""
    DEAD = "dead"
    """Nobody tries any more; it can be sent again by hand."""


class DeliveryRead(Schema):
    """One message of a job's webhook."""

    id: str
    """The ``webhook-id``, the same in every attempt."""
    seq: int
    """Number of the event."""
    type: str
    url: str
    """Where it goes; the query is not shown, since it may hold a token."""
    state: Annotated[DeliveryState | str, WordOf(DeliveryState)]
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

"""A job's result on its way to where its owner wants it (``deliver``)."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, SecretStr

from axformer.wire.base import Schema, Uri, WordOf, printable


class HandoverState(StrEnum):
    """How far it is."""

    WAITING = "waiting"
    SENDING = "sending"
    DONE = "done"
    FAILED = "failed"


class DeliverTo(Schema):
    """Where to put a job's files when it has succeeded."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"uri": "hf://acme/reviews-small", "token": "hf_..."}]})

    uri: Uri
    """``s3://bucket/prefix``, or ``hf://organisation/name``, a repository of models that is made if it is missing, private."""
    token: Annotated[SecretStr, printable(4000)]  # session tokens of Amazon have more than a thousand characters
    """Your token for the model hub, or ``KEY_ID:SECRET`` for a bucket, with ``:SESSION_TOKEN`` where there is one. It is
    stored encrypted, never shown, sent only to the hub or the store, and deleted when the files are there or cannot be put
    there."""


class HandoverErrorRead(Schema):
    """Why the last attempt failed."""

    code: str
    """Stable code for programs."""
    message: str
    """What was wrong, and what to do."""


class HandoverRead(Schema):
    """Where a job's files go, and how far that is."""

    uri: str
    state: Annotated[HandoverState | str, WordOf(HandoverState)]
    """``waiting`` for the job's success or for the next attempt, ``sending``, ``done`` or ``failed``."""
    attempts: int = 0
    """Attempts since it was asked for."""
    error: HandoverErrorRead | None = None
    """Of the last attempt; ``POST /v1/jobs/{id}/deliver`` repeats what has failed."""
    files: int | None = None
    """Files that are there."""
    bytes: int | None = None
    changed_at: datetime | None = None
    """When it came into this state."""

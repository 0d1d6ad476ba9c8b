"""A job's result on its way to where its owner wants it (``deliver``)."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, SecretStr

from axformer.wire.base import Schema, Uri, WordOf

_TOKEN_LENGTH = 4000
"""Characters; session tokens of Amazon have more than a thousand."""


class HandoverState(StrEnum):
    """How far it is."""

    WAITING = "waiting"
    SENDING = "sending"
    DONE = "done"
    FAILED = "failed"


def _printable(token: SecretStr) -> SecretStr:
    if re.fullmatch(f"[!-~]{{1,{_TOKEN_LENGTH}}}", token.get_secret_value()) is None:
        raise ValueError(f"is not a token: at most {_TOKEN_LENGTH} letters, digits and signs of ASCII, without spaces")
    return token


class DeliverTo(Schema):
    """Where to put a job's files when it has succeeded."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"uri": "hf://acme/reviews-small", "token": "hf_..."}]})

    uri: Uri
    """``s3://bucket/prefix``, or ``hf://organisation/name``, a repository of models that is made if it is missing, private."""
    token: Annotated[SecretStr, AfterValidator(_printable)]
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

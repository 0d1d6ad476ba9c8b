"""Keys of a team, what the caller's own key is, and what was done with them."""

from datetime import datetime

from pydantic import AwareDatetime, ConfigDict, Field

from axformer.wire.base import Name, Schema
from axformer.wire.scopes import Scope, ScopeWord

GRACE_HOURS_MOST = 30 * 24.0
"""A month; a key that is needed for longer need not be replaced yet."""


class KeyCreate(Schema):
    """A key to be made."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "nightly pipeline", "scopes": ["write"]}]})

    name: Name
    """What it is for, as a reminder."""
    scopes: list[Scope] = Field(default=[Scope.WRITE], min_length=1, max_length=len(Scope))
    """What it may do. ``admin`` includes ``write``, and ``write`` includes ``read``."""
    expires_at: AwareDatetime | None = None
    """From when on it is refused; null is never."""


class KeyRotate(Schema):
    """How a key is replaced."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace_hours": 2}]})

    grace_hours: float | None = Field(default=None, ge=0, le=GRACE_HOURS_MOST)
    """How long the old key stays valid; null is what the operator has set, a day by default."""


class KeyRead(Schema):
    """A key of the team, without its secret."""

    id: str
    """The part of the key between the two underscores."""
    name: str
    scopes: list[ScopeWord]
    """All that it may do."""
    created_at: datetime
    expires_at: datetime | None
    """From when on it is refused; null is never."""
    last_used_at: datetime | None
    """To the minute."""
    revoked_at: datetime | None
    replaced_by: str | None
    """The key that was made to take its place."""


class KeyCreated(KeyRead):
    """A key that was just made."""

    key: str
    """What to send as ``Authorization: Bearer KEY``; shown only once and stored nowhere."""


class KeyRotated(KeyCreated):
    """A key that takes the place of another."""

    replaces: KeyRead
    """The old key; it is valid until its ``expires_at``."""


class TeamRead(Schema):
    """The caller's team."""

    id: str
    name: str


class MeRead(Schema):
    """The caller's team and key."""

    team: TeamRead
    key: KeyRead
    """The key of this request."""


class AuditRead(Schema):
    """One action, or what was counted in an hour."""

    id: int
    at: datetime
    """When it happened; for what is counted, the first time in the hour."""
    key_id: str | None
    """The key that did it or was refused; null for the operator of the service."""
    action: str
    """What was done, for example ``job.cancel``; ``key.refused`` is a key with a wrong secret, revoked or expired."""
    object_id: str | None
    """What it was done to."""
    address: str | None
    """The latest address of the request; null for the service's own command line."""
    times: int
    """Number of refusals or downloads in the hour; 1 for everything else."""

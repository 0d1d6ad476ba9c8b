"""Changes in a team, and who made them."""

from datetime import datetime

from axformer.wire.base import Schema


class AuditRead(Schema):
    """One change, or a key that was refused."""

    id: int
    at: datetime
    """When it happened; for a refused key, the first time in the hour."""
    key_id: str | None
    """The key that did it or was refused; null for the operator of the service."""
    action: str
    """What was done, for example ``job.cancel``; ``key.refused`` is a key with a wrong secret, revoked or expired."""
    object_id: str | None
    """What it was done to."""
    address: str | None
    """The latest address of the request; null for the service's own command line."""
    times: int
    """Number of refusals of a key in the hour; 1 for everything else."""

"""Changes in a team, and who made them."""

from datetime import datetime

from axformer.wire.base import Schema


class AuditRead(Schema):
    """One change, or a key that was refused."""

    id: int
    at: datetime
    """When it was done; of a key that was refused, the first time in the hour."""
    key_id: str | None
    """Which key did it, or was refused; null is the operator of the service."""
    action: str
    """What was done, for example ``job.cancel``; ``key.refused`` is a key with a wrong secret, revoked or expired."""
    object_id: str | None
    """What it was done to."""
    address: str | None
    """Where the request came from, at last; null is the service's own command line."""
    times: int
    """How often a key was refused in the hour; 1 for all else."""

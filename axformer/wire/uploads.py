"""Files that a team has sent."""

from datetime import datetime

from axformer.wire.base import Schema


class UploadRead(Schema):
    """One file."""

    id: str
    uri: str
    """What to write in a job: ``upload:<id>``."""
    filename: str
    sha256: str
    bytes: int
    created_at: datetime

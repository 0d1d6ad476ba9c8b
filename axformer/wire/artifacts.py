"""Files that a team has sent or that a job has produced."""

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


class ArtifactRead(Schema):
    """One file of a finished job."""

    name: str
    """Path inside the artifact, for example ``model/model.safetensors``."""
    sha256: str
    bytes: int
    media_type: str
    created_at: datetime
    url: str
    """Where to download it."""


class ArtifactList(Schema):
    """All files of a job, by name; there are few."""

    data: list[ArtifactRead]

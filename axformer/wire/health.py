"""Health of the service."""

from axformer.wire.base import Schema


class HealthRead(Schema):
    """The process answers."""

    status: str
    version: str = ""
    """The version of the service; empty where it is of an earlier version."""
    result_key: str = ""
    """The public key of what signs results (`provenance.json`), Ed25519 in PEM; empty where it is of an earlier version."""


class ReadyRead(Schema):
    """The services that requests need, each ``ok`` or its error."""

    status: str
    database: str
    migrations: str
    broker: str
    disk: str = "ok"

"""Whether the service can work."""

from axformer.wire.base import Schema


class HealthRead(Schema):
    """The process answers."""

    status: str


class ReadyRead(Schema):
    """The parts that a request needs, each ``ok`` or what is wrong with it."""

    status: str
    database: str
    migrations: str
    broker: str

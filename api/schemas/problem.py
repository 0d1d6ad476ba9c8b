"""The form of every error (RFC 9457)."""

from pydantic import Field

from axformer.wire.base import Schema


class ProblemField(Schema):
    """What is wrong with one value."""

    detail: str
    pointer: str | None = None
    """Where in the body, for example ``#/config/refine_margin``."""
    parameter: str | None = None
    """Which query parameter, path parameter or header."""


class Problem(Schema):
    """Why the request was not served."""

    type: str
    """Always ``about:blank``: ``status`` and ``code`` say it all."""
    title: str
    """The status in words."""
    status: int
    detail: str
    """What was wrong, with which value, and what to do."""
    instance: str
    """The address that was asked."""
    code: str
    """Stable, for programs."""
    errors: list[ProblemField] = Field(default_factory=list)
    used: int | None = None
    """Only where a limit of the team is reached: what it uses now, jobs or bytes."""
    limit: int | None = None
    """Only there: what it may use."""
    request_id: str | None = None
    """Only of unexpected errors: what to look for in the log."""

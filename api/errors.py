"""The errors that the API answers with, as one tree below :class:`ApiError`; every class has its HTTP status.

Services raise them, ``api.http.problems`` renders them as ``application/problem+json`` (RFC 9457).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one value of a request."""

    detail: str
    pointer: str | None = None
    """Where in the body, as a JSON pointer in a URI fragment (RFC 6901), for example ``#/config/refine_margin``."""
    parameter: str | None = None
    """Which query parameter, path parameter or header."""


@dataclass(eq=False)
class ApiError(Exception):
    """Base class of all error answers."""

    detail: str
    """What was wrong, with which value, and what to do."""
    code: str = ""
    """Stable code for programs; each class has a general one."""
    errors: Sequence[FieldError] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, int] = field(default_factory=dict)
    """For a limit: ``used`` and ``limit``, as members of the answer."""

    status = 500
    default_code = "internal_error"

    def __str__(self) -> str:
        return self.detail


class BadRequestError(ApiError):
    """The request cannot be read."""

    status = 400
    default_code = "bad_request"


class NoValidKeyError(ApiError):
    """There is no valid key."""

    status = 401
    default_code = "unauthorized"


class NotPermittedError(ApiError):
    """The key is valid, but its scope does not allow this."""

    status = 403
    default_code = "forbidden"


class NoSuchObjectError(ApiError):
    """There is no such thing, or it is another team's."""

    status = 404
    default_code = "not_found"


class NotAcceptableError(ApiError):
    """The format asked for does not exist."""

    status = 406
    default_code = "not_acceptable"


class TooSlowError(ApiError):
    """The body comes too slowly."""

    status = 408
    default_code = "upload_too_slow"


class WrongStateError(ApiError):
    """The thing is in a state that does not allow it."""

    status = 409
    default_code = "conflict"


class BodyTooLargeError(ApiError):
    """There are more bytes than allowed."""

    status = 413
    default_code = "too_large"


class UnsupportedMediaError(ApiError):
    """The body is of a type that is not read here."""

    status = 415
    default_code = "unsupported_media_type"


class RangeError(ApiError):
    """The range lies outside the file."""

    status = 416
    default_code = "range_not_satisfiable"


class InvalidInputError(ApiError):
    """A value of the request cannot be used."""

    status = 422
    default_code = "invalid_request"


class Refusals:
    """Collects what is wrong with the parts of a body, so that one answer names it all.

    Each part is read in a ``with`` block of :meth:`gathered`; :meth:`check` comes after the last one.
    """

    def __init__(self) -> None:
        self._found: list[InvalidInputError] = []

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keep an :class:`InvalidInputError` of the block for later; other errors pass."""
        try:
            yield
        except InvalidInputError as error:
            self._found.append(error)

    def check(self) -> None:
        """End the reading.

        Raises:
            InvalidInputError: something was wrong; with the code of what was found first.
        """
        if self._found:
            said = "; ".join(dict.fromkeys(error.detail for error in self._found))
            errors = [field_error for error in self._found for field_error in error.errors]
            raise replace(self._found[0], detail=said, errors=errors)


class LimitReachedError(ApiError):
    """There were too many requests in a short time, or the team has reached a limit."""

    status = 429
    default_code = "too_many_requests"


class UnavailableError(ApiError):
    """A service that the answer needs is unavailable."""

    status = 503
    default_code = "unavailable"


class NoRoomError(ApiError):
    """The service has no room for what was sent."""

    status = 507
    default_code = "storage_full"

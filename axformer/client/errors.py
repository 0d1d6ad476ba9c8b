"""What can go wrong between a program and the service, as a branch of the library's tree of errors.

AxFormerError
└── ServiceError              whatever went wrong with the service
    ├── UnreachableError      it does not answer, or its answers break off
    ├── UnexpectedAnswerError it answers something that is not an answer of AxFormer
    ├── TransferError         a file arrived changed
    ├── WaitTimeoutError      a job has not ended in the time that it was given
    └── RefusedError          it answers with a problem; ``status`` and ``code`` say which
        ├── InvalidRequestError   400, 406, 413, 415, 416, 422
        ├── UnauthorizedError     401
        ├── ForbiddenError        403
        ├── NotFoundError         404
        ├── ConflictError         409
        ├── TooManyRequestsError  429
        └── ServerFailedError     500 and above
"""

from collections.abc import Mapping
from typing import Any

from axformer.errors import AxFormerError


class ServiceError(AxFormerError):
    """Something went wrong with the service."""

    code = "service_error"
    status: int | None = None
    """Of the answer; None if there is none."""

    @property
    def message(self) -> str:
        """What was wrong, with which value, and what to do."""
        return str(self)


class UnreachableError(ServiceError):
    """The service does not answer, or its answers break off."""

    code = "unreachable"

    def __init__(self, message: str, *, may_have_acted: bool) -> None:
        """``may_have_acted``: whether the request may have reached the service, so that sending it again may do it twice."""
        super().__init__(message)
        self.may_have_acted = may_have_acted


class UnexpectedAnswerError(ServiceError):
    """What answers is not the AxFormer service, or another release of it than this client can read."""

    code = "unexpected_answer"


class TransferError(ServiceError):
    """A file is not what its SHA-256 says."""

    code = "transfer_damaged"


class WaitTimeoutError(ServiceError):
    """A job has not ended in the time that it was given; it goes on."""

    code = "wait_timeout"


class RefusedError(ServiceError):
    """The service answered with a problem (RFC 9457)."""

    def __init__(
        self, message: str, *, status: int, code: str, retry_after: float | None = None, problem: Mapping[str, Any]
    ) -> None:
        """Take what the answer says.

        Args:
            message: its ``detail``.
            status: of the answer.
            code: stable, for programs.
            retry_after: seconds after which the service wants to be asked again.
            problem: the whole document, with ``errors`` for each field; empty where the answer has none.
        """
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.problem = problem


class InvalidRequestError(RefusedError):
    """A value of the request cannot be used."""


class UnauthorizedError(RefusedError):
    """There is no valid key."""


class ForbiddenError(RefusedError):
    """The key may not do this."""


class NotFoundError(RefusedError):
    """There is no such thing, or it is another team's."""


class ConflictError(RefusedError):
    """The thing is in a state that does not allow it."""


class TooManyRequestsError(RefusedError):
    """The team or the key has as many as it may have for now."""


class ServerFailedError(RefusedError):
    """The service, or what stands before it, has failed."""


BY_STATUS: dict[int, type[RefusedError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    429: TooManyRequestsError,
}
"""Statuses with a class of their own; the others below 500 are :class:`InvalidRequestError`."""
FIRST_SERVER_ERROR = 500


def refusal_class(status: int) -> type[RefusedError]:
    """The class of a refusal with this status."""
    return ServerFailedError if status >= FIRST_SERVER_ERROR else BY_STATUS.get(status, InvalidRequestError)

"""Why a result cannot be put where its owner wants it."""

from typing import Any


class HandoverError(Exception):
    """An attempt failed.

    Args:
        code: stable, for programs.
        message: what was wrong and what to do, for the owner of the job.
        retryable: whether the next attempt may succeed.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable

    def as_dict(self) -> dict[str, Any]:
        """The error as it is stored."""
        return {"code": self.code, "message": str(self).replace("\0", "?")}


def refused(uri: str, why: str) -> HandoverError:
    """The place does not take the files with this token."""
    message = f"'{uri}' does not take the files with this token ({why}); check both, and ask for it again"
    return HandoverError("target_refused", message)


def unavailable(uri: str, why: str) -> HandoverError:
    """The place does not answer, or fails."""
    return HandoverError("target_unavailable", f"'{uri}' does not answer or fails ({why})", retryable=True)

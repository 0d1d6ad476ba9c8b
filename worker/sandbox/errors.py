"""What can go wrong with a job's process, beside what the library refuses."""

from typing import Literal


class SandboxError(Exception):
    """Base of these errors."""


class ProcessDiedError(SandboxError):
    """The process ended without a word: killed by the system for its memory, say, or by a fault of a library."""


class ProcessMisbehavedError(SandboxError):
    """The process says or leaves what it never should. Whoever made its inputs may have made it do so."""


class WorkFailedError(SandboxError):
    """The process could not go on, and said why."""

    def __init__(self, reason: Literal["out_of_memory", "disk_full", "unforeseen"], detail: str) -> None:
        super().__init__(f"{reason} in a job's process")
        self.reason = reason
        self.detail = detail
        """For the operator."""


class RestrictionsMissingError(SandboxError):
    """The operator requires restrictions that this machine does not grant."""

"""Errors of a job's process, apart from the library's refusals."""

from typing import Literal


class SandboxError(Exception):
    """Base class of these errors."""


class ProcessDiedError(SandboxError):
    """The process ended without a message, for example killed for its memory use or crashed in a library."""


class ProcessMisbehavedError(SandboxError):
    """The process sent or left something that it never should; the author of its inputs may control it."""


Reason = Literal["out_of_memory", "disk_full", "unforeseen"]
"""Why a process could not continue."""


class WorkFailedError(SandboxError):
    """The process could not continue, and said why."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason} in a job's process")
        self.reason = reason
        self.detail = detail
        """For the operator."""


class RestrictionsMissingError(SandboxError):
    """The operator requires restrictions that this machine does not grant."""


class GpuUnusableError(SandboxError):
    """This machine has a GPU, but the processes of jobs cannot use it."""

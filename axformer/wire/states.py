"""The kinds and the states of a job."""

from enum import StrEnum
from typing import Annotated

from axformer.wire.base import WordOf


class JobKind(StrEnum):
    """What a job does, by which a worker knows how to carry it out."""

    PASS = "pass"  # noqa: S105 - no password
    """Prune a model: one pass, or another method."""
    EXPORT = "export"
    """Hand out a model on the path of another job, without a pass of its own."""
    ANALYSIS = "analysis"
    """Report on a model that stays as it is."""


KindWord = Annotated[JobKind | str, WordOf(JobKind)]


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    FETCHING = "fetching"
    VALIDATING = "validating"
    RUNNING = "running"
    PACKAGING = "packaging"
    PAUSING = "pausing"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
"""Nothing happens to these by itself any more."""


class JobOutcome(StrEnum):
    """What became of a succeeded job, seen from what was asked for. Its state is ``succeeded`` either way."""

    DONE = "done"
    TARGET_MISSED = "target_missed"
    NOT_USABLE = "not_usable"


StateWord = Annotated[JobState | str, WordOf(JobState)]
OutcomeWord = Annotated[JobOutcome | str, WordOf(JobOutcome)]

"""What a job does, by which a worker knows how to carry it out."""

from enum import StrEnum
from typing import Annotated

from axformer.wire.base import WordOf


class JobKind(StrEnum):
    """A kind of job."""

    PASS = "pass"  # noqa: S105 - no password
    """Prune a model: one pass, or another method."""
    EXPORT = "export"
    """Hand out a model on the path of another job, without a pass of its own."""
    ANALYSIS = "analysis"
    """Report on a model that stays as it is."""


KindWord = Annotated[JobKind | str, WordOf(JobKind)]

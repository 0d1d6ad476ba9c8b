"""What a job of kind ``analysis`` was asked for, and what it found, as the job shows them."""

from axformer.wire.analysis import Advice, ReportName
from axformer.wire.base import Schema


class AnalysisAsked(Schema):
    """What an analysis was asked for."""

    reports: list[ReportName | str] | None = None
    """The wanted reports; null for all that the inputs allow."""
    rows: int | None = None
    """Most rows of each data set; null for the default."""


class FindingRead(Advice):
    """The last line of one report: what it found, and the command that uses it."""

    report: str
    """Name of the report."""

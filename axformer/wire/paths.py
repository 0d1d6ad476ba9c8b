"""The models on the path of a pass."""

from axformer.wire.base import Schema
from axformer.wire.report import PathPoint


class PathRead(Schema):
    """Every acceptance gives a model; in a pass, each contains the following ones."""

    kept: int | None
    """``seq`` of the job's result; null before the job has succeeded."""
    data: list[PathPoint]
    """The untouched model first; empty before the job has succeeded."""
